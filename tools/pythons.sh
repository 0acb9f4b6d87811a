#!/usr/bin/env bash
# The quick tests of the bindings on every other supported Python that can be had here, at the same time: installed, or
# of Debian testing. What does not depend on the Python is left out: native campaigns, models, segments as files, disks,
# runs of many processes, benchmarks, Spark.
#   pythons.sh [only PATH] [newest | VERSION ...]      no version: all of them
set -euo pipefail
cd "$(dirname "$0")/.."
tests=tests
if [ "${1:-}" = only ]; then
  tests=$2
  shift 2
fi
versions=("$@")
supported=(3.11 3.12 3.13 3.14)
[ ${#versions[@]} -gt 0 ] || versions=("${supported[@]}")
left_out=(crash spark verification fuzz models test_benchmarks.py
  test_architecture.py test_docs.py core/test_segment.py core/test_bad_segments.py core/test_sigbus.py
  edges/test_containers.py edges/test_reboots.py edges/test_page_sizes.py edges/test_crashed_disks.py
  edges/test_full_file_systems.py edges/test_refusals.py edges/test_truncation.py edges/test_failed_creates.py
  '*/test_damage_in_use.py' '*/test_between_*.py' contract/test_free_threaded.py
  cli/test_help.py cli/test_completion.py cli/test_machine.py
  contract/test_put_once_restarts.py events/test_processes.py rings/test_no_room.py
  slots/test_capacity_between_processes.py slots/test_processes.py)

test_on() {  # built with -O0, which is quicker: no speed is measured here
  make --no-print-directory VENV=".venv-$1" BUILD="build/$1" PYTHON="$2" \
    PIP_ARGS=--config-settings=setup-args=-Doptimization=0 ".venv-$1/.package"
  ".venv-$1/bin/python" -m pytest -q -m 'not slow' -p no:cacheprovider "${left_out[@]/#/--ignore-glob=tests/}" "$tests"
}

mkdir -p build
if [ "${versions[*]}" = newest ]; then
  newest=${supported[-1]}
  versions=()
  for ((i = ${#supported[@]} - 1; i >= 0 && ${#versions[@]} == 0; --i)); do
    tools/get_python.sh "${supported[i]}" > /dev/null && versions=("${supported[i]}")
  done
  [ "${versions[*]}" = "$newest" ] || echo "Python $newest cannot be had here: the newest that can is ${versions[*]:-none}"
fi
ours=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
runs=()
for version in "${versions[@]}"; do
  [ "$version" = "$ours" ] && continue
  python=$(tools/get_python.sh "$version") || { echo "Python $version cannot be had here: not tested"; continue; }
  echo "the quick tests on Python $version: build/python-$version.log"
  test_on "$version" "$python" > "build/python-$version.log" 2>&1 &
  runs+=("$version:$!")
done
failed=0
for run in "${runs[@]}"; do
  if wait "${run#*:}"; then
    echo "Python ${run%%:*}: $(tail -n 1 "build/python-${run%%:*}.log")"
  else
    failed=1
    echo "Python ${run%%:*} failed:"
    tail -n 60 "build/python-${run%%:*}.log"
  fi
done
exit $failed
