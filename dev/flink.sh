#!/usr/bin/env bash
# Brings the Flink of the nightly tests: its jars, which PyPI's apache-flink-libraries carries. Each version once, outside
# of the tree.
# Usage: flink.sh PYTHON VERSION...   installs what is not there
#        flink.sh path VERSION        says where it is, or would be
set -euo pipefail
. "${BASH_SOURCE%/*}/once.sh"

if [[ $1 == path ]]; then
  echo "$cache/flink-$2"
  exit
fi

python=$1
shift

fetch_flink() {
  echo "fetching Flink $version for the tests, once: 300 MB, into $cache/flink-$version"
  # without what it depends on, of which its jars need nothing
  "$python" -m pip install -q --no-deps --no-compile --no-cache-dir --root-user-action ignore \
    --target "$1" "apache-flink-libraries==$version"
  mv "$1/pyflink" "$1/made"
}

for version in "$@"; do
  once flink "$cache/flink-$version" fetch_flink
done
