#!/usr/bin/env bash
# Unpack a Python of Debian testing into build/python-VERSION, and print its path: debian_python.sh VERSION
# It brings its own C library and is run by its own loader, so it works on an older Debian, and nothing outside build/
# changes. The archive is the one that this machine's apt is set up for; apt checks every package by the archive's
# signature. Ten seconds and 35 MB the first time; later it is only looked at.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
prefix=$PWD/build/python-$version
python=$prefix/usr/bin/python$version
work=$PWD/build/python-$version-packages
log=$PWD/build/python-$version-unpack.log
say() { echo "$*" >&2; }
fail() { say "error: $1"; say "       $2"; exit 1; }

if tools/find_python.sh "$version" "$python"; then
  exit 0
fi
for tool in apt-get dpkg-deb; do
  command -v "$tool" > /dev/null || fail "$tool is missing: Python $version is unpacked from Debian's packages" \
    "put a python$version with its headers in the PATH"
done
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' | head -n 1)
[ -n "$archive" ] || fail "apt knows no Debian archive here" "set one up in /etc/apt, or put a python$version in the PATH"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || fail "$keyring is missing" "install the package debian-archive-keyring"

# All of apt's state is our own: for it no package is installed, so it fetches the C library as well.
rm -rf "$work" "$prefix"
mkdir -p "$work/lists/partial" "$work/archives/partial"
: > "$work/status"
echo "deb [signed-by=$keyring] $archive testing main" > "$work/sources.list"
apt=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
  -o "Dir::State::Lists=$work/lists" -o "Dir::State::Status=$work/status" -o "Dir::Cache=$work"
  -o "Dir::Cache::Archives=$work/archives" -o APT::Sandbox::User= -o APT::Install-Recommends=0
  -o APT::Update::Error-Mode=any -o Acquire::Languages=none -o Acquire::Retries=3 -qq --yes)
fetch_and_unpack() {
  apt-get "${apt[@]}" update &&
    apt-get "${apt[@]}" --download-only install "python$version" "python$version-venv" "libpython$version-dev" &&
    for package in "$work"/archives/*.deb; do
      case ${package##*/} in
        libpython"$version"-dev_*) ;;
        *-dev_*) continue ;;  # modules are compiled with this machine's own headers
      esac
      dpkg-deb --extract "$package" "$prefix" || return 1
    done
}
say "fetching and unpacking Python $version of Debian testing: $log"
fetch_and_unpack > "$log" 2>&1 || { rm -rf "$work"; tail -n 2 "$log" >&2; fail "Debian testing's python$version cannot be had" "see $log"; }
rm -rf "$work"

# ensurepip looks for the wheel of pip where Debian has it.
sed -i "s|'WHEEL_PKG_DIR': '/usr|'WHEEL_PKG_DIR': '$prefix/usr|" "$prefix/usr/lib/python$version"/_sysconfigdata_*.py
# Debian has this header in a folder that its own gcc searches.
mv "$prefix"/usr/include/*/python"$version"/pyconfig.h "$prefix/usr/include/python$version/pyconfig.h"
# The program goes aside, and a script that runs it by its own loader takes its name: Python takes it for the program.
mv "$python" "$python.program"
loader=$(echo "$prefix"/usr/lib/*/ld-linux-*.so.*)
cat > "$python" << SCRIPT
#!/bin/sh
exec "$loader" --library-path "${loader%/*}" --argv0 "\$0" "$python.program" "\$@"
SCRIPT
chmod +x "$python"
tools/find_python.sh "$version" "$python" || fail "the Python $version that was unpacked does not work here" "see $log"
