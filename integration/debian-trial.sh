# shellcheck shell=bash
# Sourced by debian-package.sh and debian-service.sh: a Debian of its own in $root, in namespaces that end with the
# script. Sets home, package, version, work and root.
# Needs: root, dpkg-deb, unshare, 1 GB in TMPDIR, and mmdebstrap with a Debian mirror. Instead of the last two,
# VGPU_TRIAL_BASE may name a tar file of a Debian system.

name=$(basename "$0" .sh)

step() {
  printf '%s: %s\n' "$name" "$*"
}

fail() {
  step "$@" >&2
  exit 1
}

# enter <arguments of the script>: goes on in a mount and process namespace of its own, so that what is mounted and
# started there ends with it.
enter() {
  local tool
  [ "$(id -u)" -eq 0 ] || fail "this must be run as root"
  for tool in dpkg-deb unshare chroot tar; do
    command -v "$tool" >/dev/null || fail "there is no $tool here"
  done
  [ "${VGPU_TRIAL_INSIDE-}" = yes ] ||
    VGPU_TRIAL_INSIDE=yes exec unshare --mount-proc --pid --fork --kill-child "$0" "$@"
  home=$(cd "$(dirname "$0")/.." && pwd)
  package=${1-}
  if [ -z "$package" ]; then
    for package in "$home"/target/package/vgpu_*.deb; do :; done
  fi
  [ -f "$package" ] || fail "there is no package: $package; run ./vgpu package first"
  version=$(dpkg-deb -f "$package" Version)
  work=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-trial.XXXXXX")
  root=$work/root
  trap leave EXIT
}

# Lazily: after a failure, programs may still run there.
leave() {
  umount -R -l "$root"/proc "$root"/dev "$root"/sys 2>/dev/null || true
  rm -rf --one-file-system "$work"
}

# make_root [package...]: a Debian with these packages.
make_root() {
  mkdir "$root"
  if [ -n "${VGPU_TRIAL_BASE-}" ]; then
    tar -C "$root" -xf "$VGPU_TRIAL_BASE"
  else
    command -v mmdebstrap >/dev/null || fail "there is no mmdebstrap here, and VGPU_TRIAL_BASE names no tar file"
    mmdebstrap --quiet --variant=minbase "${@/#/--include=}" bookworm "$root"
  fi
}

# The same package as a later version, in the file that is given.
make_next() {
  dpkg-deb -R "$package" "$work/next"
  sed -i "s/^Version: .*/Version: $version+next/" "$work/next/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone --build "$work/next" "$1" >/dev/null
  rm -rf "$work/next"
}

# expect <text> <command...>: its output has the text, and it ends with 0.
expect() {
  local text=$1 output
  shift
  output=$("$@" 2>&1) || fail "this failed: $*: $output"
  case $output in *"$text"*) ;; *) fail "'$text' is not in the output of: $*: $output" ;; esac
}
