#!/bin/sh
# The hook `tiphys-check`: shows what the commit would break. Without tiphys on the PATH it installs a pinned release into
# the cache, once.
set -eu

version=0.1.0
if ! command -v tiphys >/dev/null 2>&1; then
  dir=${XDG_CACHE_HOME:-$HOME/.cache}/tiphys/pre-commit/$version
  # What it says is no finding of the hook.
  [ -x "$dir/tiphys" ] || sh "$(dirname "$0")/../../packaging/install.sh" --version "$version" --dir "$dir" >&2
  PATH=$dir:$PATH
fi
exec tiphys check --offline --diff HEAD "$@"
