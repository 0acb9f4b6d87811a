#!/usr/bin/env bash
# Run every kind of queue hard and prove what it did: prove.sh [OPS [KIND ...]]
# OPS operations of each kind between processes that are killed at random, a tenth of that between processes that are
# not, and a tenth between threads. Of overwriting queues and logs about five in six of them come to be.
# Histories go to build/prove and are removed when they are proved.
set -euo pipefail
cd "$(dirname "$0")/.."
ops=${1:-125M}
kinds=("${@:2}")
[ ${#kinds[@]} -gt 0 ] || kinds=(bounded growing overwriting slots events)
few=$(python3 -c "
import sys
units = {'k': 10**3, 'm': 10**6, 'g': 10**9}
text = sys.argv[1].lower()
print(int(float(text.rstrip('kmg')) * units.get(text[-1], 1)) // 10 or 1)" "$ops")
folder=build/prove
rm -rf "$folder"
mkdir -p "$folder"
for kind in "${kinds[@]}"; do
  for run in "killed --ops $ops --kill 5" "processes --ops $few" "threads --ops $few --threads"; do
    read -r name options <<< "$run"
    echo "$kind, $name"
    started=$(date +%s)
    # shellcheck disable=SC2086  # several options
    .venv/bin/penstock stress "$kind" $options --history "$folder/$kind-$name"
    .venv/bin/penstock check "$folder/$kind-$name"
    echo "$kind, $name: proved in $(($(date +%s) - started)) s"
    rm -r "$folder/$kind-$name"
  done
done
