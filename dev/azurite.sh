#!/usr/bin/env bash
# Brings the Azurite of the nightly tests (Azure's storage emulator, from npm), in the versions that
# tests/servers/azurite locks. Each once, outside of the tree.
# Usage: azurite.sh        installs it if it is not there
#        azurite.sh path   says where it is, or would be
set -euo pipefail

sources=$(cd "${BASH_SOURCE%/*}/../tests/servers/azurite" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iceberg-crypto
folder=$cache/azurite-$(sha256sum < "$sources/package-lock.json" | cut -c 1-16)

if [[ ${1:-} == path ]]; then
  echo "$folder"
  exit
fi

mkdir -p "$cache"
exec 9> "$cache/azurite.lock" # clones side by side install it once
flock 9
[[ ! -d $folder ]] || exit 0
echo "installing Azurite for the tests, once, into $folder"
unfinished=$(mktemp -d "$cache/.azurite-XXXXXX")
trap 'rm -rf "$unfinished"' EXIT
cp "$sources"/package*.json "$unfinished"
npm ci --silent --ignore-scripts --no-audit --no-fund --no-update-notifier --prefix "$unfinished"
chmod 755 "$unfinished"
mv "$unfinished" "$folder"
