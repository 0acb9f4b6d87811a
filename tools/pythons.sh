#!/usr/bin/env bash
# The quick tests on every other supported Python that is installed here.
set -euo pipefail
cd "$(dirname "$0")/.."
ours=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for version in 3.11 3.12 3.13; do
  [ "$version" = "$ours" ] && continue
  python=$(tools/find_python.sh "$version") || { echo "python$version is not installed here: not tested"; continue; }
  echo "the quick tests on Python $version"
  make --no-print-directory VENV=".venv-$version" BUILD="build/$version" PYTHON="$python" ".venv-$version/.package"
  ".venv-$version/bin/python" -m pytest -q -m 'not slow' -p no:cacheprovider --ignore tests/test_models.py --ignore tests/spark tests
done
