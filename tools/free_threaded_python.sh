#!/usr/bin/env bash
# Build a Python 3.13 without a GIL from Debian's source package into build/python-3.13t, and print its path.
# The first time takes about five minutes on two cores; later it is only looked at. Nothing outside build/ changes,
# except that the compiler's headers are installed where this runs as root and they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=$PWD/build/python-3.13t
python=$prefix/bin/python3.13t
work=$PWD/build/python-3.13t-source
log=$PWD/build/python-3.13t-build.log
headers=(libssl-dev zlib1g-dev libffi-dev libbz2-dev liblzma-dev libsqlite3-dev uuid-dev)
say() { echo "$*" >&2; }
fail() { say "error: $1"; say "       $2"; exit 1; }

if [ -x "$python" ] && "$python" -c 'import ctypes, ssl, zlib' 2> /dev/null; then
  echo "$python"
  exit 0
fi
for tool in apt-get dpkg-query make gcc xz; do
  command -v "$tool" > /dev/null || fail "$tool is missing: a Python without a GIL is built from Debian's source package" \
    "on Debian: apt-get install build-essential xz-utils; elsewhere: put a python3.13t in the PATH and call tools/pythons.sh 3.13t"
done
missing=()
for package in "${headers[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] || fail "these packages are missing: ${missing[*]}" "as root: apt-get install ${missing[*]}"
  say "installing ${missing[*]}"
  apt-get install -qq --yes "${missing[@]}" >&2
fi

# The archive is the one that this machine is set up for; only the release is another. All of apt's state is our own.
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/archives/partial"
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 'Component: main' | head -n 1)
[ -n "$archive" ] || fail "apt knows no Debian archive here" "set one up in /etc/apt and call apt-get update"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || fail "$keyring is missing" "install the package debian-archive-keyring"
apt=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work" -o "Dir::Cache::Archives=$work/archives"
  -o APT::Sandbox::User= -o Acquire::Retries=3 -qq)
fetch() {
  local release=$1
  echo "deb-src [signed-by=$keyring] $archive $release main" > "$work/sources.list"
  (cd "$work" && apt-get "${apt[@]}" update && apt-get "${apt[@]}" --download-only --tar-only source python3.13) &&
    tar xf "$work"/python3.13_*.orig.tar.* --directory "$work" --one-top-level=python --strip-components=1
}
build() {
  cd "$work/python" &&
    ./configure --quiet --disable-gil --disable-test-modules --with-ensurepip=no --prefix="$prefix" &&
    MAKEFLAGS='' make --silent -j "$(nproc)" &&  # not with the flags of a make that has called us
    MAKEFLAGS='' make --silent install
}
say "fetching the source of Python 3.13 and building it without a GIL, about five minutes: $log"
fetched=
for release in testing sid trixie; do
  if fetch "$release" > "$log" 2>&1; then
    fetched=$release
    break
  fi
done
[ -n "$fetched" ] || { tail -n 5 "$log" >&2; fail "Debian's source of Python 3.13 could not be fetched" "see $log"; }
(build) >> "$log" 2>&1 || { tail -n 40 "$log" >&2; fail "a Python without a GIL could not be built" "see $log"; }
"$python" -c 'import ctypes, ssl, zlib' || fail "the Python that was built lacks modules" "see $log"
rm -rf "$work"
echo "$python"
