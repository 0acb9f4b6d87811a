#!/usr/bin/env bash
# Run every kind of queue hard and prove what it did: prove.sh [OPS [KIND ...]]
# At least OPS operations of each kind between processes that are killed at random, as many between processes that are
# not, and as many between threads. Overwriting queues and logs are asked for more: not all of it comes to be.
# Histories go to build/prove and are removed when they are proved.
set -euo pipefail
cd "$(dirname "$0")/.."
ops=${1:-100M}
kinds=("${@:2}")
[ ${#kinds[@]} -gt 0 ] || kinds=(bounded growing overwriting slots events)
many=$(python3 -c "
import sys
units = {'k': 10**3, 'm': 10**6, 'g': 10**9}
text = sys.argv[1].lower()
print(int(float(text.rstrip('kmg')) * units.get(text[-1], 1)) or 1)" "$ops")
folder=build/prove
rm -rf "$folder"
mkdir -p "$folder"
for kind in "${kinds[@]}"; do
  case $kind in
    overwriting | events) fifths=8 ;;
    *) fifths=5 ;;
  esac
  for run in "killed --kill 5" "processes" "threads --threads"; do
    read -r name options <<< "$run"
    echo "$kind, $name"
    started=$(date +%s)
    # shellcheck disable=SC2086  # several options
    .venv/bin/queueduct stress "$kind" --ops $((many * fifths / 5)) $options --history "$folder/$kind-$name"
    made=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["operations"])' "$folder/$kind-$name/manifest.json")
    [ "$made" -ge "$many" ] || { echo "only $made operations of $many came to be: ask for more" >&2; exit 1; }
    .venv/bin/queueduct check "$folder/$kind-$name"
    echo "$kind, $name: proved in $(($(date +%s) - started)) s"
    rm -r "$folder/$kind-$name"
  done
done
