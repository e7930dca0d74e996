# Sourced by scripts that bring what tests need, and `set -e`: it is kept outside of the tree, so that `make clean` and other
# clones need not bring it again.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iceberg-crypto

# once NAME TARGET MAKE: unless TARGET is there, calls the function MAKE with a folder in which it is to make `made`, and moves
# that to TARGET, whole. Clones side by side do it once. MAKE says what takes long.
once() (
  mkdir -p "$cache"
  exec 9> "$cache/$1.lock"
  flock 9
  [[ ! -e $2 ]] || exit 0
  unfinished=$(mktemp -d "$cache/.$1-XXXXXX")
  trap 'rm -rf "$unfinished"' EXIT
  "$3" "$unfinished"
  mv "$unfinished/made" "$2"
)
