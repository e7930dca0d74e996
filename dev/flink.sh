#!/usr/bin/env bash
# Brings the Flink of the nightly tests: its jars, which PyPI's apache-flink-libraries carries. Each version once, outside
# of the tree.
# Usage: flink.sh PYTHON VERSION...   installs what is not there
#        flink.sh path VERSION        says where it is, or would be
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/iceberg-crypto

if [[ $1 == path ]]; then
  echo "$cache/flink-$2"
  exit
fi

python=$1
shift
mkdir -p "$cache"
exec 9> "$cache/flink.lock" # clones side by side fetch it once
flock 9
for version in "$@"; do
  folder=$cache/flink-$version
  [[ ! -d $folder ]] || continue
  echo "fetching Flink $version for the tests, once: 300 MB, into $folder"
  unfinished=$(mktemp -d "$cache/.flink-XXXXXX")
  trap 'rm -rf "$unfinished"' EXIT
  # without what it depends on, of which its jars need nothing
  "$python" -m pip install -q --no-deps --no-compile --no-cache-dir --root-user-action ignore \
    --target "$unfinished" "apache-flink-libraries==$version"
  mv "$unfinished/pyflink" "$folder"
  rm -rf "$unfinished"
done
