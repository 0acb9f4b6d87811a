#!/usr/bin/env bash
# The quick tests and the thread stress on a Python without a GIL, which is built the first time: free_threaded.sh [OPS]
# What the stress has done is recorded there, and proved by the Python of .venv: Spark has none without a GIL.
set -euo pipefail
cd "$(dirname "$0")/.."
version=3.13t
ops=${1:-500k}
tools/find_python.sh "$version" > /dev/null || tools/free_threaded_python.sh > /dev/null
export PYTHON_GIL=0
failed=0
tools/pythons.sh "$version" || failed=1
.venv-$version/bin/python -m pytest -q -p no:cacheprovider --durations=5 \
  tests/contract/test_free_threaded.py tests/*/test_between_*.py || failed=1

.venv-$version/bin/python -c 'import pyarrow' 2> /dev/null ||
  .venv-$version/bin/pip install --quiet --only-binary :all: pyarrow  # for the histories
folder=build/free-threaded
rm -rf "$folder"
mkdir -p "$folder"
for kind in bounded growing overwriting slots events; do
  echo "$kind, threads without a GIL"
  .venv-$version/bin/queueduct stress "$kind" --threads --ops "$ops" --history "$folder/$kind" || { failed=1; continue; }
  env -u PYTHON_GIL .venv/bin/queueduct check "$folder/$kind" || failed=1
done
exit $failed
