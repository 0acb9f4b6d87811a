#!/usr/bin/env bash
# All Python tests, in three streams beside each other, since each spends much of its time waiting: Spark's, the
# campaigns, and the rest. Spark comes first: it gives a Python worker ten seconds to start, whatever the machine does
# meanwhile. The campaigns only compute, and come last. What is left of the processors builds for the newest Python.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
campaigns=(tests/crash tests/test_models.py tests/test_model_search.py tests/test_fuzz.py)
logs=(build/tests-spark.log build/tests-campaigns.log)
pytest=(.venv/bin/python -m pytest -p no:cacheprovider --durations=12)

echo "the tests of Spark and the campaigns, meanwhile: ${logs[*]}"
"${pytest[@]}" tests/spark > "${logs[0]}" 2>&1 &
streams=($!)
nice -n 10 "${pytest[@]}" "${campaigns[@]}" > "${logs[1]}" 2>&1 &
streams+=($!)
nice -n 15 tools/pythons.sh build 3.13 > build/pythons.log 2>&1 &
builds=$!
trap 'kill "${streams[@]}" "$builds" 2> /dev/null || true' EXIT

failed=0
nice -n 5 "${pytest[@]}" --ignore=tests/spark "${campaigns[@]/#/--ignore=}" tests || failed=1
for stream in "${streams[@]}"; do
  wait "$stream" || failed=1
done
wait "$builds" || true  # whoever tests them builds again, and says what is wrong
trap - EXIT
cat "${logs[@]}"
exit $failed
