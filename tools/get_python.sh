#!/usr/bin/env bash
# Print the path of a Python of that version: one that is here, or Debian testing's, unpacked into build/. Or fail.
set -euo pipefail
cd "$(dirname "$0")"
./find_python.sh "$1" || { [[ $1 != *t ]] && ./debian_python.sh "$1"; }  # one without a GIL: free_threaded_python.sh
