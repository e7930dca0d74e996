#!/usr/bin/env bash
# A newcomer in a new Debian, 12 and 13, that has Python and nothing else of use: pastes each block of README and of the
# tutorials, in order, and must get what the pages say (newcomer.py). Needs root, debootstrap and the network. What git has
# at HEAD is tried. Twenty minutes each.
# Usage: newcomer.sh [PAGE]...
#        SUITES, MIRROR, KEEP and SKELETON: see new_debian.sh.
set -euo pipefail
cd "${BASH_SOURCE%/*}/.."
. dev/new_debian.sh

[[ $# != 0 ]] || set -- README.md docs/tutorial.md docs/tutorial-security.md
for suite in $SUITES; do
  make_system "$suite" newcomer
  step root "python3 -u dev/newcomer.py $*"
  [[ -n ${KEEP:-} ]] || rm -rf --one-file-system "$system"
done
