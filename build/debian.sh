# shellcheck shell=bash
# Sourced by parts of ./vgpu: packages of one Debian suite, fetched and unpacked into directories, and not installed.

DEBIAN_SUITE=bookworm
DEBIAN_MIRROR=http://deb.debian.org/debian
DEBIAN_KEYS=/usr/share/keyrings/debian-archive-keyring.gpg

# prepare_apt DIRECTORY [NAME...]: makes apt-get see a machine of its own in the directory. Only the named packages are
# installed there.
prepare_apt() {
  local apt=$1 name
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/etc/apt.conf.d" "$apt/etc/preferences.d" || return 1
  echo "deb [signed-by=$DEBIAN_KEYS] $DEBIAN_MIRROR $DEBIAN_SUITE main contrib" >"$apt/etc/sources.list"
  for name in "${@:2}"; do
    printf 'Package: %s\nStatus: install ok installed\nArchitecture: amd64\nMulti-Arch: foreign\n' "$name"
    printf 'Maintainer: vgpu\nVersion: 999\nDescription: left out\n\n'
  done >"$apt/status"
  cat >"$apt/apt.conf" <<EOF2
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc "$apt/etc";
Dir::Etc::sourceparts "-";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
EOF2
  export APT_CONFIG=$apt/apt.conf
}
