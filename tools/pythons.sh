#!/usr/bin/env bash
# The quick tests of the bindings on every other supported Python that is installed here. What does not depend on the
# Python is left out: native campaigns, models, segments as files, benchmarks, Spark.
set -euo pipefail
cd "$(dirname "$0")/.."
ours=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
left_out=(crash spark concurrency test_models.py test_model_search.py test_benchmarks.py test_architecture.py
  test_segment.py test_bad_segments.py test_fuzz.py events/test_bad_event_segments.py events/test_damage_in_use.py)
for version in 3.11 3.12 3.13; do
  [ "$version" = "$ours" ] && continue
  python=$(tools/find_python.sh "$version") || { echo "python$version is not installed here: not tested"; continue; }
  echo "the quick tests on Python $version"
  make --no-print-directory VENV=".venv-$version" BUILD="build/$version" PYTHON="$python" ".venv-$version/.package"
  ".venv-$version/bin/python" -m pytest -q -m 'not slow' -p no:cacheprovider "${left_out[@]/#/--ignore=tests/}" tests
done
