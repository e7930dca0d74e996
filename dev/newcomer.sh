#!/usr/bin/env bash
# A newcomer in a new Debian that has Python and nothing else of use: pastes each block of README and of the tutorial,
# in order, and must get what the pages say (newcomer.py). Needs root, debootstrap and the network. What git has at HEAD
# is tried. A quarter of an hour.
# Usage: newcomer.sh [PAGE]...
#        SUITE, MIRROR, KEEP and SKELETON: see new_debian.sh.
set -euo pipefail
cd "${BASH_SOURCE%/*}/.."
. dev/new_debian.sh

[[ $# != 0 ]] || set -- README.md docs/tutorial.md
make_system newcomer
step root "python3 -u dev/newcomer.py $*"
