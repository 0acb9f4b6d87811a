#!/usr/bin/env bash
# Build the native tests in one flavour and run them.
#   tools/native.sh plain | address | thread    unit tests and stress, under that sanitizer
#   tools/native.sh crash                       the long crash campaigns; other pairs of deaths with CRASH_SEED=2 and 3
#   tools/native.sh bench                       build the native benchmarks
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS  # it names descriptors of make's that ninja does not get
flavour=$1
build=build/native-$flavour
options=(-Dpython=false -Dnative_tests=true -Dwerror=true)
case $flavour in
  plain|bench|crash) build=build/native; options+=(-Dbuildtype=release) ;;
  address) options+=(-Doptimization=0 -Ddebug=false -Dcpp_args=-g1 -Db_sanitize=address,undefined -Db_lundef=false) ;;
  thread) options+=(-Doptimization=1 -Ddebug=false -Dcpp_args=-g1 -Db_sanitize=thread -Db_lundef=false) ;;
  *) echo "usage: $0 plain|address|thread|crash|bench" >&2; exit 2 ;;
esac
mkdir -p build
if [ ! -f "$build/build.ninja" ]; then
  meson setup "$build" "${options[@]}" > "build/setup-$flavour.log" || { cat "build/setup-$flavour.log"; exit 1; }
fi
# meson looks for the tests when it is set up: do it again when there are others
find tests/native -name '*.cpp' | sort > "$build/sources.found"
if ! cmp -s "$build/sources.found" "$build/sources"; then
  meson setup --reconfigure "$build" > "build/setup-$flavour.log" || { cat "build/setup-$flavour.log"; exit 1; }
  mv "$build/sources.found" "$build/sources"
fi
ninja -C "$build" --quiet
case $flavour in
  bench) ;;
  crash)
    "$build/tests/native/wakeups" --rounds=1000000
    for name in bounded put_once events overwriting slots growing slots_put_once; do
      echo "crash_$name --long --seed ${CRASH_SEED:-1}"
      "$build/tests/native/crash_$name" --long --seed "${CRASH_SEED:-1}"
    done ;;
  *) meson test -C "$build" --no-rebuild --print-errorlogs --num-processes 2 ;;
esac
