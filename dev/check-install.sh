#!/usr/bin/env bash
# Does what README says under "Try it", with a few of the tests, in a new Debian that has make and Python and nothing else
# of use: once as root, for whom make installs what is missing, and once as a user without root, who is told what to
# install. Needs root, debootstrap and the network. What git has at HEAD is checked. Says what each step took.
# Usage: check-install.sh [root|user]...
#        SUITE and MIRROR choose another Debian; KEEP=FOLDER keeps the systems there, and takes the base from there again.
set -euo pipefail
cd "${BASH_SOURCE%/*}/.."

TESTS='test-py ARGS="tests/unit/test_errors.py tests/kms/vault/test_auth.py"'
JUNIT='test-jvm JUNIT=FormatFuzzTest'
SUITE=${SUITE:-bookworm}

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 1
}

[[ $(id -u) == 0 ]] || fail "a new system can be made by root only" "run it as root"
command -v debootstrap > /dev/null || fail "missing: debootstrap" "apt-get install -y debootstrap"
if [[ -n ${KEEP:-} ]]; then
  place=$KEEP
  mkdir -p "$place"
else
  place=$(mktemp -d)
  trap 'rm -rf "$place"' EXIT
fi

# inside USER COMMAND: in the system of that name, in name spaces of its own, so that no mount and no process stays.
inside() {
  local home=/home/user
  [[ $1 != root ]] || home=/root
  unshare --mount --pid --fork bash -euc '
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    exec chroot --userspec="$1" "$0" env -i -C "$2" "${@:4}" HOME="$2" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -euc "$3"
  ' "$system" "$1" "$home" "cd iceberg-crypto 2> /dev/null || true; $2" "${environment[@]}"
}

# step USER COMMAND: one that must succeed, with its times.
step() {
  echo "== $name as $1: $2"
  local TIMEFORMAT="== $name as $1: $2: %R s, CPU %U + %S s"
  time inside "$1" "$2"
}

# A new system from the base, with this project in a home folder.
make_system() {
  system=$place/$name
  rm -rf --one-file-system "$system"
  cp -a "$place/base" "$system"
  local home=$system/root
  if [[ $name == user ]]; then
    chroot "$system" useradd --create-home user
    home=$system/home/user
  fi
  mkdir "$home/iceberg-crypto"
  git archive HEAD | tar -x -C "$home/iceberg-crypto"
  chown -R --reference="$home" "$home/iceberg-crypto"
}

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

if [[ ! -e $place/base/usr/bin/make ]]; then
  echo "== making a Debian $SUITE"
  debootstrap --variant=minbase --include=make,python3 "$SUITE" "$place/base" ${MIRROR:+"$MIRROR"} > /dev/null
fi
printf '127.0.0.1 localhost %s\n' "$(hostname)" > "$place/base/etc/hosts"
# The authorities that this machine trusts beside Debian's, such as a company's proxy.
environment=()
own=(/usr/local/share/ca-certificates/*.crt)
if [[ -e ${own[0]} ]]; then
  mkdir -p "$place/base/usr/local/share/ca-certificates"
  cp "${own[@]}" "$place/base/usr/local/share/ca-certificates"
  environment+=(PIP_CERT=/etc/ssl/certs/ca-certificates.crt)
fi

[[ $# != 0 ]] || set -- root user
for name in "$@"; do
  make_system
  if [[ $name == user ]]; then
    refused "make demo"
    step user "make demo"
    refused "make $TESTS"
  else
    step root "make demo"
  fi
  step "$name" "make $TESTS"
  step "$name" "make $JUNIT"
  [[ -n ${KEEP:-} ]] || rm -rf --one-file-system "$system"
done
