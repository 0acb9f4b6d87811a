#!/usr/bin/env bash
# Install what the tests of the live views need besides Python: tmux, chromium, zsh and fish of Debian, as root, and Playwright's
# Python part, which drives that chromium. What cannot be had is told; its tests are then skipped, and say why.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "$*" >&2; }

missing=()
for name in tmux zsh fish; do command -v "$name" > /dev/null || missing+=("$name"); done
command -v chromium > /dev/null || command -v chromium-browser > /dev/null || missing+=(chromium)
if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get > /dev/null; then
    say "  ${missing[*]}: not here, and this is no Debian; the tests that need it are skipped"
  elif [ "$(id -u)" != 0 ]; then
    say "  ${missing[*]}: not here; as root: apt-get install ${missing[*]}; the tests that need it are skipped until then"
  else
    say "  ${missing[*]}"
    install=(apt-get install -qq --yes --no-install-recommends "${missing[@]}" fonts-dejavu-core)
    "${install[@]}" > /dev/null 2>&1 || { apt-get update -qq && "${install[@]}" > /dev/null; } \
      || say "  ${missing[*]} could not be installed; the tests that need it are skipped"
  fi
fi
.venv/bin/python tools/setup.py --extra test-browser .venv
