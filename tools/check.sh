#!/usr/bin/env bash
# Lint, and the quick tests: what every kind of queue promises, segments and items, the rules of the rooms, and of each
# kind what needs no other process. In three streams beside each other, in about a minute on two processors.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
slow=(free_threaded.py put_once_restarts.py exit.py waiting.py fork.py)  # they wait for processes, or for time to pass
rooms=(tests/core/test_{items,item_shapes,exact_arrays,bad_segments,unreadable}.py tests/rings/test_{bounded,growing}.py
  tests/events/test_{getting,subscribing}.py tests/overwriting/test_queue.py tests/slots/test_{queue,loans}.py
  tests/cli/test_{create,queues,put,get}.py tests/test_architecture.py)
pytest=(.venv/bin/python -m pytest -q -p no:cacheprovider -m 'not slow')

(.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && tools/stubtest.sh) > build/check-lint.log 2>&1 &
lint=$!
"${pytest[@]}" "${rooms[@]}" > build/check-rooms.log 2>&1 &
other=$!
failed=0
"${pytest[@]}" "${slow[@]/#/--ignore-glob=tests/contract/test_}" tests/contract || failed=1
wait "$other" || failed=1
wait "$lint" || failed=1
tail -n 30 build/check-rooms.log build/check-lint.log
exit $failed
