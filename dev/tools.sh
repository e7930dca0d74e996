#!/usr/bin/env bash
# Makes sure that what `make` cannot bring itself is there: a JDK from 17 to 23, Gradle, Python >= 3.10 with venv.
# As root on a Debian it installs what is missing; otherwise it says what to install, and stops.
# With "tests", the same for what the tests run beside that: SoftHSM2 (a PKCS#11 token), OpenSC's pkcs11-tool, and a
# C compiler for the library that puts faults between the two. (Vault's Go comes with the Python packages for tests.)
# With "nightly", beside those Chromium for the pages of reports and documents, PostgreSQL's server, Node.js with npm
# for Azurite, and the shells zsh and fish.
# Usage: tools.sh PYTHON [tests|nightly]
set -euo pipefail

python=${1:-python3}
packages=()

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 1
}

[[ -n ${JAVA_HOME:-} ]] || command -v javac > /dev/null || packages+=(default-jdk-headless)
command -v gradle > /dev/null || packages+=(gradle)
command -v "$python" > /dev/null || packages+=(python3)
"$python" -c 'import ensurepip, venv' 2> /dev/null || packages+=(python3-venv)

if [[ -n ${2:-} ]]; then
  command -v softhsm2-util > /dev/null || packages+=(softhsm2)
  command -v pkcs11-tool > /dev/null || packages+=(opensc)
  command -v gcc > /dev/null || packages+=(gcc)
  echo '#include <stdio.h>' | gcc -fsyntax-only -xc - 2> /dev/null || packages+=(libc6-dev)
fi
if [[ ${2:-} == nightly ]]; then
  command -v chromium > /dev/null || packages+=(chromium)
  command -v chromedriver > /dev/null || packages+=(chromium-driver)
  compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || packages+=(postgresql)
  command -v npm > /dev/null || packages+=(nodejs npm)
  command -v zsh > /dev/null || packages+=(zsh)
  command -v fish > /dev/null || packages+=(fish)
fi

[[ -z ${JAVA_HOME:-} ]] || . "${BASH_SOURCE%/*}/jdk.sh" # a wrong one is an error before anything is installed
if (( ${#packages[@]} )); then
  if [[ $(id -u) != 0 ]] || ! command -v apt-get > /dev/null; then
    fail "missing: ${packages[*]}" "as root: apt-get install -y ${packages[*]}; then run make again"
  fi
  echo "installing ${packages[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" > /dev/null
fi

. "${BASH_SOURCE%/*}/jdk.sh"
version=$(javac -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
(( ${version:-0} >= 17 )) \
  || fail "the JDK in $JAVA_HOME is version ${version:-unknown}; 17 or newer is needed" \
    "apt-get install -y default-jdk-headless, and set JAVA_HOME to it"
(( version < 24 )) \
  || fail "the JDK in $JAVA_HOME is version $version; Spark 4.1 is for 17 and 21" \
    "apt-get install -y openjdk-21-jdk-headless, and set JAVA_HOME to it"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
  || fail "$("$python" --version) is too old; 3.10 or newer is needed" "make PYTHON=/path/to/python3.11"
