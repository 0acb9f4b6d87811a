#!/usr/bin/env bash
# Print the path of a working Python of that version which has its headers, or fail.
set -u
version=$1
shopt -s nullglob
for candidate in "$(command -v "python$version" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
  [ -n "$candidate" ] || continue
  "$candidate" - "$version" <<'CHECK' >/dev/null 2>&1 && { echo "$candidate"; exit 0; }
import os, sys, sysconfig
ok = "%d.%d" % sys.version_info[:2] == sys.argv[1]
sys.exit(0 if ok and os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")) else 1)
CHECK
done
exit 1
