#!/usr/bin/env bash
# Make the sdist, and from it a wheel for every supported Python that can be had here, into dist/: wheels.sh [VERSION ...]
# auditwheel refuses a wheel that glibc 2.28 or its libstdc++ could not load. Each wheel is then used as a stranger would.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.venv/bin:$PATH
platform=manylinux_2_28_$(uname -m)
versions=("$@")
[ ${#versions[@]} -gt 0 ] || versions=(3.11 3.12 3.13 3.13t 3.14)
rm -rf build/wheels
mkdir -p build/wheels dist

git diff --quiet HEAD -- || echo "warning: the sdist has what is committed; what is not is left out" >&2
rm -f dist/queueduct-*
.venv/bin/python -m build --sdist --no-isolation --outdir dist . > build/wheels/sdist.log 2>&1 ||
  { tail -n 30 build/wheels/sdist.log; exit 1; }
sdist=$(echo dist/queueduct-*.tar.gz)

make_wheel() {  # VERSION PYTHON
  make --no-print-directory VENV=".venv-$1" PYTHON="$2" ".venv-$1/.tools" &&
    MAKEFLAGS='' PATH="$PWD/.venv-$1/bin:$PATH" pip wheel --no-build-isolation --no-deps --no-cache-dir \
      --wheel-dir "build/wheels/$1" "$sdist" &&
    .venv/bin/auditwheel repair --plat "$platform" --strip --wheel-dir dist "build/wheels/$1"/*.whl &&
    "$2" tools/try_wheel.py --demo "dist/queueduct-"*"-$(tag_of "$1")-"*.whl
}
tag_of() {
  local digits=${1/./}
  echo "cp${digits%t}-cp$digits"
}

failed=0
rows=("$(printf '%-7s %-68s %6s  %s' python file kB 'as a stranger')")
rows+=("$(printf '%-7s %-68s %6d  %s' '' "$sdist" $(($(stat -c %s "$sdist") / 1000)) '')")
for version in "${versions[@]}"; do
  log=build/wheels/$version.log
  if ! python=$(tools/get_python.sh "$version"); then
    rows+=("$(printf '%-7s %s' "$version" 'is not here: no wheel')")
    continue
  fi
  echo "a wheel for Python $version, from the sdist: $log"
  if make_wheel "$version" "$python" > "$log" 2>&1; then
    wheel=$(echo dist/queueduct-*-"$(tag_of "$version")"-*.whl)
    rows+=("$(printf '%-7s %-68s %6d  %s' "$version" "$wheel" $(($(stat -c %s "$wheel") / 1000)) "$(tail -n 1 "$log")")")
  else
    failed=1
    tail -n 40 "$log"
    rows+=("$(printf '%-7s failed: %s' "$version" "$log")")
  fi
done
printf '%s\n' '' "${rows[@]}"
exit $failed
