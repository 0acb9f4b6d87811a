#!/usr/bin/env bash
# The quick tests of the bindings on every other supported Python that is installed here, at the same time. What does
# not depend on the Python is left out: native campaigns, models, segments as files, benchmarks, Spark.
set -euo pipefail
cd "$(dirname "$0")/.."
left_out=(crash spark checking concurrency test_models.py test_model_search.py test_benchmarks.py test_architecture.py
  test_segment.py test_bad_segments.py test_fuzz.py events/test_bad_event_segments.py events/test_damage_in_use.py
  overwriting/test_bad_overwriting_segments.py slots/test_bad_slot_segments.py)

test_on() {
  make --no-print-directory VENV=".venv-$1" BUILD="build/$1" PYTHON="$2" ".venv-$1/.package"
  ".venv-$1/bin/python" -m pytest -q -m 'not slow' -p no:cacheprovider "${left_out[@]/#/--ignore=tests/}" tests
}

ours=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
mkdir -p build
runs=()
for version in 3.11 3.12 3.13; do
  [ "$version" = "$ours" ] && continue
  python=$(tools/find_python.sh "$version") || { echo "python$version is not installed here: not tested"; continue; }
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
