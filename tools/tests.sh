#!/usr/bin/env bash
# All Python tests: Spark's beside the others, since both spend much of their time waiting. Spark's come first: it gives
# a Python worker ten seconds to start, whatever the machine does meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/tests-spark.log
failed=0
echo "the tests of Spark, meanwhile: $log"
.venv/bin/python -m pytest -p no:cacheprovider tests/spark > "$log" 2>&1 &
spark=$!
trap 'kill "$spark" 2> /dev/null || true' EXIT
nice -n 5 .venv/bin/python -m pytest --ignore=tests/spark || failed=1
wait "$spark" || failed=1
trap - EXIT
cat "$log"
exit $failed
