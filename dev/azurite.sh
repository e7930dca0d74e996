#!/usr/bin/env bash
# Brings the Azurite of the nightly tests (Azure's storage emulator, from npm), in the versions that
# tests/servers/azurite locks. Each once, outside of the tree.
# Usage: azurite.sh        installs it if it is not there
#        azurite.sh path   says where it is, or would be
set -euo pipefail
. "${BASH_SOURCE%/*}/once.sh"

sources=$(cd "${BASH_SOURCE%/*}/../tests/servers/azurite" && pwd)
folder=$cache/azurite-$(sha256sum < "$sources/package-lock.json" | cut -c 1-16)

if [[ ${1:-} == path ]]; then
  echo "$folder"
  exit
fi

install_azurite() {
  echo "installing Azurite for the tests, once, into $folder"
  mkdir "$1/made"
  cp "$sources"/package*.json "$1/made"
  npm ci --silent --ignore-scripts --no-audit --no-fund --no-update-notifier --prefix "$1/made"
}

once azurite "$folder" install_azurite
