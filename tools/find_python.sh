#!/usr/bin/env bash
# Print the path of a working Python of that version which has its headers, or fail. A version as 3.13t is one without a
# GIL: what tools/free_threaded_python.sh has built is found, too.
set -u
version=$1
shopt -s nullglob
for candidate in "$(command -v "python$version" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python \
  "$(dirname "$0")/../build/python-$version/bin/python$version"; do
  [ -n "$candidate" ] || continue
  "$candidate" - "$version" <<'CHECK' >/dev/null 2>&1 && { echo "$candidate"; exit 0; }
import os, sys, sysconfig
ok = "%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "") == sys.argv[1]
sys.exit(0 if ok and os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")) else 1)
CHECK
done
exit 1
