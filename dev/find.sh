#!/usr/bin/env bash
# Finds another Java or Python than the one in use, for tests on it. Prints its path, or ends with 1 if it is not found.
# Usage: find.sh java VERSION     a JDK of that major version: its folder, for JAVA_HOME
#        find.sh python VERSION   such as 3.12: the program
# A JDK, or a folder of several, in JDKS is seen first; several have a colon between them.
set -euo pipefail
shopt -s nullglob

what=$1
version=$2
case $what in
  java)
    IFS=: read -ra folders <<< "${JDKS:-}:/usr/lib/jvm:$HOME/.sdkman/candidates/java"
    for folder in "${folders[@]}"; do
      [[ -n $folder ]] || continue
      for home in "$folder" "$folder"/*; do
        if [[ -x $home/bin/javac ]] && grep -qs "^JAVA_VERSION=\"$version[.\"]" "$home/release"; then
          readlink -f "$home"
          exit
        fi
      done
    done
    ;;
  python)
    # one on the PATH may only say that this version is missing, as pyenv's does
    found=("$HOME"/.pyenv/versions/*/bin/python"$version" "$HOME"/.local/share/uv/python/*/bin/python"$version")
    for python in "$(command -v "python$version")" "${found[@]}"; do
      if [[ -x $python && $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) == "$version" ]]; then
        echo "$python"
        exit
      fi
    done
    ;;
esac
exit 1
