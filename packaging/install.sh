#!/bin/sh
# Installs a release of Tiphys into a folder of your own. It refuses a file whose checksum is not that of the release, and
# neither asks for rights nor changes anything else.
#
#   sh install.sh [--version VERSION] [--dir DIR] [--base-url URL] [--sums-sha256 DIGEST]
#
# --version      such as 0.1.0; by default the newest release           (or $TIPHYS_VERSION)
# --dir          where the program goes; by default ~/.local/bin        (or $TIPHYS_INSTALL_DIR)
# --base-url     a folder with the files of one release, for a mirror   (or $TIPHYS_BASE_URL)
# --sums-sha256  what SHA256SUMS of the release has to hash to          (or $TIPHYS_SUMS_SHA256)
set -eu

repository=https://github.com/tiphys/tiphys
version=${TIPHYS_VERSION:-}
dir=${TIPHYS_INSTALL_DIR:-}
base=${TIPHYS_BASE_URL:-}
sums=${TIPHYS_SUMS_SHA256:-}

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }

while [ $# -gt 0 ]; do
  case $1 in
    --version | --dir | --base-url | --sums-sha256)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --version) version=$2 ;;
        --dir) dir=$2 ;;
        --base-url) base=$2 ;;
        --sums-sha256) sums=$2 ;;
      esac
      shift 2
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) fail "unknown argument $1; --help lists them" ;;
  esac
done

version=${version#v}
case $version in
  *[!0-9A-Za-z.+-]*) fail "$version is no version" ;;
esac
if [ -z "$dir" ]; then
  [ -n "${HOME:-}" ] || fail 'HOME is not set: say --dir'
  dir=$HOME/.local/bin
fi
if [ -z "$base" ]; then
  if [ -n "$version" ]; then base=$repository/releases/download/v$version; else base=$repository/releases/latest/download; fi
fi
case $base in
  https://* | http://127.0.0.1:* | http://localhost:*) ;;
  *) fail "$base is not reached by https" ;;
esac

case $(uname -s) in
  Linux) system=unknown-linux-musl ;;
  Darwin) system=apple-darwin ;;
  *) fail "there is no archive for $(uname -s) here; see $repository/releases" ;;
esac
case $(uname -m) in
  x86_64 | amd64) machine=x86_64 ;;
  arm64 | aarch64) machine=aarch64 ;;
  *) fail "there is no archive for $(uname -m); see $repository/releases" ;;
esac
target=$machine-$system

fetch() {
  if command -v curl >/dev/null 2>&1; then
    case $base in
      https://*) curl --proto =https --tlsv1.2 --fail --silent --show-error --location --retry 3 --output "$2" "$base/$1" ;;
      *) curl --fail --silent --show-error --output "$2" "$base/$1" ;;
    esac
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$base/$1"
  else
    fail 'neither curl nor wget is here'
  fi || fail "cannot fetch $base/$1"
}

sha256_of() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum <"$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 <"$1"
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r <"$1"
  else
    fail 'none of sha256sum, shasum and openssl is here: the archive cannot be verified'
  fi | cut -c 1-64
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fetch SHA256SUMS "$scratch/SHA256SUMS"
if [ -n "$sums" ]; then
  found=$(sha256_of "$scratch/SHA256SUMS")
  [ "$found" = "$sums" ] || fail "SHA256SUMS at $base hashes to $found, not to $sums. Nothing was installed."
fi
line=$(grep -E "^[0-9a-f]{64}  tiphys-${version:-[^ /]+}-$target\.tar\.gz\$" "$scratch/SHA256SUMS") ||
  fail "the release at $base has no archive for $target${version:+ of version $version}"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "SHA256SUMS at $base names more than one archive for $target"
wanted=${line%% *}
archive=${line##* }
fetch "$archive" "$scratch/archive"
found=$(sha256_of "$scratch/archive")
if [ "$found" != "$wanted" ]; then
  fail "the checksum of $archive is $found; the release says $wanted. Nothing was installed."
fi
tar -xzf "$scratch/archive" -C "$scratch"
program=$scratch/${archive%.tar.gz}/tiphys
[ -f "$program" ] || fail "$archive has no program"

mkdir -p "$dir" || fail "cannot create $dir: say another folder with --dir"
# Beside the old one first: a program that runs is replaced, not written over.
new=$dir/.tiphys.$$
if ! { cp "$program" "$new" && chmod 755 "$new" && mv -f "$new" "$dir/tiphys"; }; then
  rm -f "$new"
  fail "cannot write into $dir: say another folder with --dir"
fi
said=$("$dir/tiphys" version) || fail "$dir/tiphys does not run here"
printf '%s is in %s\n' "$said" "$dir"
case :${PATH:-}: in
  *:"$dir":*) ;;
  *) printf 'That folder is not on your PATH yet.\n' ;;
esac
