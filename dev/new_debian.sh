# Sourced: new Debian systems in a folder, to try in what a new user does. Needs root, debootstrap and the network.
# SUITES chooses the releases, MIRROR another server; KEEP=FOLDER keeps the systems there, and takes the bases from there
# again. SKELETON=FOLDER is copied over each new system: what this network needs, such as a pip.conf, a uv.toml or an
# apt.conf.d.

SUITES=${SUITES:-bookworm trixie}

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

# make_system SUITE NAME [USER]: a new one of that release, with what git has at HEAD in the user's home folder.
make_system() {
  local base=$place/base-$1
  name="$1, $2"
  system=$place/$1-$2
  make_base "$1" "$base"
  rm -rf --one-file-system "$system"
  cp -a "$base" "$system"
  [[ -z ${SKELETON:-} ]] || cp -a "$SKELETON/." "$system"
  local home=$system/root
  if [[ ${3:-root} != root ]]; then
    chroot "$system" useradd --create-home "$3"
    home=$system/home/$3
  fi
  tree=$home/iceberg-crypto
  mkdir "$tree"
  git archive HEAD | tar -x -C "$tree"
  chown -R --reference="$home" "$tree"
}

# make_base SUITE FOLDER
make_base() {
  if [[ ! -e $2/usr/bin/make ]]; then
    echo "== making a Debian $1"
    debootstrap --variant=minbase --include=make,python3 "$1" "$2" ${MIRROR:+"$MIRROR"} > /dev/null
  fi
  printf '127.0.0.1 localhost %s\n' "$(hostname)" > "$2/etc/hosts"
  if [[ -e ${own[0]} ]]; then
    mkdir -p "$2/usr/local/share/ca-certificates"
    cp "${own[@]}" "$2/usr/local/share/ca-certificates"
  fi
}

# The authorities that this machine trusts beside Debian's, such as a company's proxy.
environment=()
own=(/usr/local/share/ca-certificates/*.crt)
[[ ! -e ${own[0]} ]] || environment+=({PIP_CERT,SSL_CERT_FILE}=/etc/ssl/certs/ca-certificates.crt)
