#!/usr/bin/env bash
# All Python tests, in four streams beside each other, since each spends much of its time waiting. Spark's come first:
# it gives a Python worker ten seconds to start, whatever the machine does meanwhile. Then the rest, and the campaigns,
# which only compute, hardly behind them. What is left of the processors builds for the newest Python; when Spark is
# done, the quick tests run on that, too.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
campaigns=(tests/crash tests/models tests/fuzz)
logs=(build/tests-spark.log build/tests-campaigns.log build/pythons.log)
newest=3.13
pytest=(.venv/bin/python -m pytest -p no:cacheprovider --durations=12)

echo "the tests of Spark, the campaigns and those on Python $newest, meanwhile: ${logs[*]}"
"${pytest[@]}" tests/spark > "${logs[0]}" 2>&1 &
streams=($!)
nice -n 6 "${pytest[@]}" "${campaigns[@]}" > "${logs[1]}" 2>&1 &
streams+=($!)
set -m  # a process group of its own: all that it starts ends with it
(
  nice -n 15 tools/pythons.sh build "$newest" || true  # who tests it builds again, and says what is wrong
  while kill -0 "${streams[0]}" 2> /dev/null; do sleep 1; done
  exec nice -n 5 tools/pythons.sh "$newest"
) > "${logs[2]}" 2>&1 &
streams+=($!)
set +m
trap 'kill "${streams[@]:0:2}" "-${streams[2]}" 2> /dev/null || true' EXIT

failed=0
nice -n 5 "${pytest[@]}" --ignore=tests/spark "${campaigns[@]/#/--ignore=}" tests || failed=1
for stream in "${streams[@]}"; do
  wait "$stream" || failed=1
done
trap - EXIT
cat "${logs[@]}"
exit $failed
