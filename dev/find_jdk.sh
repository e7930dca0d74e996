#!/usr/bin/env bash
# Finds another JDK than the one in use, for tests on it. Prints its folder, for JAVA_HOME; ends with 1 where there is none.
# Usage: find_jdk.sh VERSION   a major version
# A JDK, or a folder of several, in JDKS is seen first; several have a colon between them.
set -euo pipefail

IFS=: read -ra folders <<< "${JDKS:-}:/usr/lib/jvm:$HOME/.sdkman/candidates/java"
for folder in "${folders[@]}"; do
  for home in ${folder:+"$folder" "$folder"/*}; do
    if [[ -x $home/bin/javac ]] && grep -qs "^JAVA_VERSION=\"$1[.\"]" "$home/release"; then
      readlink -f "$home"
      exit
    fi
  done
done
exit 1
