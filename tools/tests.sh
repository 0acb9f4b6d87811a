#!/usr/bin/env bash
# All tests but lint and the plain native ones, in streams beside each other, since each spends much of its time
# waiting. Spark's are the most urgent: it gives a Python worker ten seconds to start, whatever the machine does
# meanwhile. In the background the sanitizers are built and run, and then what every kind of queue promises is tested on
# the newest Python; make pythons runs more there.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
campaigns=(tests/crash tests/models tests/fuzz)
spark=(tests/spark tests/verification/check/test_on_spark.py)
waiting=(tests/edges tests/verification tests/site tests/cli)
pytest=(.venv/bin/python -m pytest -p no:cacheprovider --durations=12)
names=()
streams=()

start() {  # NAME NICENESS COMMAND ...: each is a process group of its own, so all that it starts ends with it
  set -m
  nice -n "$2" "${@:3}" > "build/tests-$1.log" 2>&1 < /dev/null &
  set +m
  names+=("$1")
  streams+=("$!")
}
stop_all() {
  for stream in "${streams[@]}"; do kill -- "-$stream" 2> /dev/null || true; done
}

trap stop_all EXIT
start spark 0 "${pytest[@]}" "${spark[@]}"
start waiting 5 "${pytest[@]}" "${spark[@]/#/--ignore=}" "${waiting[@]}"
start campaigns 3 "${pytest[@]}" "${campaigns[@]}"
start background 5 bash -c "tools/native.sh address && tools/native.sh thread && tools/pythons.sh only tests/contract newest"
echo "meanwhile, each in its build/tests-NAME.log: ${names[*]}"

failed=0
left_out=("${spark[@]}" "${waiting[@]}" "${campaigns[@]}")
nice -n 5 "${pytest[@]}" "${left_out[@]/#/--ignore=}" tests || failed=1
for i in "${!streams[@]}"; do
  wait "${streams[i]}" || failed=1
  cat "build/tests-${names[i]}.log"
done
trap - EXIT
exit $failed
