# Sourced: new Debian systems in a folder, to try in what a new user does. Needs root, debootstrap and the network.
# SUITE and MIRROR choose another Debian; KEEP=FOLDER keeps the systems there, and takes the base from there again.
# SKELETON=FOLDER is copied over each new system: what this network needs, such as a pip.conf or an apt.conf.d.

SUITE=${SUITE:-bookworm}

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 1
}

[[ $(id -u) == 0 ]] || fail "a new system can be made by root only" "run it as root"
command -v debootstrap > /dev/null || fail "missing: debootstrap" "apt-get install -y debootstrap"
unshare --mount --pid --fork true 2> /dev/null \
  || fail "this machine gives no name spaces of its own" "run it on a machine or in a container that may unshare"
if [[ -n ${KEEP:-} ]]; then
  place=$KEEP
  mkdir -p "$place"
else
  place=$(mktemp -d)
  trap 'rm -rf --one-file-system "$place"' EXIT
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

# make_system NAME [USER]: a new one from the base, with what git has at HEAD in the user's home folder.
make_system() {
  name=$1
  system=$place/$name
  rm -rf --one-file-system "$system"
  cp -a "$place/base" "$system"
  [[ -z ${SKELETON:-} ]] || cp -a "$SKELETON/." "$system"
  local home=$system/root
  if [[ ${2:-root} != root ]]; then
    chroot "$system" useradd --create-home "$2"
    home=$system/home/$2
  fi
  mkdir "$home/iceberg-crypto"
  git archive HEAD | tar -x -C "$home/iceberg-crypto"
  chown -R --reference="$home" "$home/iceberg-crypto"
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
