#!/usr/bin/env bash
# Builds Rustberg, a REST catalog in Rust, from its crate for the nightly tests: once, outside of the tree. It takes many minutes.
# Usage: rustberg.sh        builds it if it is not there; without a Rust that is new enough it says that it does not
#        rustberg.sh path   says where it is, or would be
set -euo pipefail
. "${BASH_SOURCE%/*}/once.sh"

version=0.3.0
needs_rust=94 # 1.94
program=$cache/rustberg-$version

if [[ ${1:-} == path ]]; then
  echo "$program"
  exit
fi

build_rustberg() {
  echo "building Rustberg for the tests, once: many minutes, into $program"
  # Only files on local disks, and no TLS. What it tells of hundreds of crates is shown when it fails.
  CARGO_TARGET_DIR=$1/target cargo install --locked --debug --config profile.dev.debug=0 --no-default-features \
    --features cli --root "$1/root" "rustberg@$version" &> "$1/log" || { cat "$1/log" >&2; exit 1; }
  mv "$1/root/bin/rustberg" "$1/made"
}

if [[ ! -e $program ]] && ! [[ $(cargo --version 2> /dev/null) =~ 1\.([0-9]+) && ${BASH_REMATCH[1]} -ge $needs_rust ]]; then
  echo "Rustberg was left out: it is built with Rust 1.$needs_rust or newer, which was not found"
  exit
fi
once rustberg "$program" build_rustberg
