#!/usr/bin/env bash
# Print the path of a working Python of that version which has its headers, or fail: find_python.sh VERSION [PATH ...]
# A version as 3.13t is one without a GIL. Without a PATH: the one in $PATH, pyenv's, and what tools/debian_python.sh has
# unpacked and tools/free_threaded_python.sh has built.
set -u
version=$1
shift
shopt -s nullglob
built=$(cd "$(dirname "$0")/.." && pwd)/build/python-$version
[ $# -gt 0 ] || set -- "$(command -v "python$version" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python \
  "$built/bin/python$version" "$built/usr/bin/python$version"
for candidate; do
  [ -n "$candidate" ] || continue
  "$candidate" - "$version" <<'CHECK' >/dev/null 2>&1 && { echo "$candidate"; exit 0; }
import os, ssl, sys, sysconfig
ok = "%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "") == sys.argv[1]
sys.exit(0 if ok and os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")) else 1)
CHECK
done
exit 1
