#!/usr/bin/env bash
# Does what README says under "Try it", with a few of the tests, in a new Debian that has make and Python and nothing else
# of use: once as root, for whom make installs what is missing, and once as a user without root, who is told what to
# install; in Debian 12 and 13. Needs root, debootstrap and the network. What git has at HEAD is checked. Says what each
# step took.
# Usage: check-install.sh [root|user]...
#        FULL=1: with all tests in place of a few. REPORTS=FOLDER gets their reports.
#        SUITES, MIRROR, KEEP and SKELETON: see new_debian.sh.
set -euo pipefail
cd "${BASH_SOURCE%/*}/.."

TESTS=('test-py ARGS="tests/unit/test_errors.py tests/kms/vault/test_auth.py"' 'test-jvm JUNIT=FormatFuzzTest')
[[ -z ${FULL:-} ]] || TESTS=(test)
. dev/new_debian.sh

# refused COMMAND: as a user, it must fail and name packages; root then installs them.
refused() {
  local told
  echo "== $name: $1, which must name what is missing"
  if told=$(inside user "$1" 2>&1); then
    fail "$1 did not miss anything" "look at dev/tools.sh"
  fi
  grep -A 1 'error: missing: ' <<< "$told" || fail "$1 failed otherwise: $told" "look at dev/tools.sh"
  local install
  install=$(sed -n 's/.*as root: \(apt-get install -y [^;]*\);.*/\1/p' <<< "$told")
  step root "cd /; apt-get update -qq; DEBIAN_FRONTEND=noninteractive $install --no-install-recommends > /dev/null"
}

[[ $# != 0 ]] || set -- root user
for suite in $SUITES; do
  for user in "$@"; do
    make_system "$suite" "$user" "$user"
    if [[ $user == user ]]; then
      refused "make demo"
      step user "make demo"
      refused "make ${TESTS[0]}"
    else
      step root "make demo"
    fi
    for tests in "${TESTS[@]}"; do
      step "$user" "make $tests"
    done
    [[ -z ${REPORTS:-} ]] || install -D -t "$REPORTS" "$tree"/jvm/build/reports/*.xml
    [[ -n ${KEEP:-} ]] || rm -rf --one-file-system "$system"
  done
done
