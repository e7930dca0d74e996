#!/usr/bin/env bash
# Brings the Prometheus of the nightly tests, with its promtool: Debian's, unpacked and not installed, so that no server starts.
# Once, outside of the tree.
# Usage: prometheus.sh        unpacks it if it is not there
#        prometheus.sh path   says where its programs are, or would be
set -euo pipefail
. "${BASH_SOURCE%/*}/once.sh"

folder=$cache/prometheus

if [[ ${1:-} == path ]]; then
  echo "$folder/usr/bin"
  exit
fi

unpack_prometheus() {
  echo "fetching Prometheus for the tests, once: 20 MB, into $folder"
  cd "$1"
  apt-get download -qq prometheus
  dpkg -x prometheus_*.deb made
}

once prometheus "$folder" unpack_prometheus
