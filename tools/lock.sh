#!/usr/bin/env bash
# Renew tools/locked.txt: the versions, with their hashes, of all that set-up and CI install, on every supported Python.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
.venv/bin/python - > build/to-lock.in << 'REQUIRED'
import tomllib
print("pip", *tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")
REQUIRED
{
  echo "# Made by make lock from pyproject.toml: what tools/setup.py and CI install, with the hashes of all its files."
  .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes --upgrade \
    --no-header --no-annotate --no-emit-index-url pyproject.toml build/to-lock.in
} > build/locked.txt
mv build/locked.txt tools/locked.txt
