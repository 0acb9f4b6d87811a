#!/usr/bin/env bash
# Compares the stubs with the calls that are installed. PEP 800's mark is not required: no user derives from two kinds.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m mypy.stubtest queueduct --mypy-config-file pyproject.toml --concise --ignore-disjoint-bases \
  --allowlist tools/stubtest-allowlist.txt
