# shellcheck shell=sh
# Sourced: which release of clang's tools the C sources are for. Each formats differently and has other checks, so only
# this one will do.
clang_release=14

# find_clang NAME CANDIDATE: sets `tool` to NAME-14 or NAME in PATH, or to the CANDIDATE if there is one. Ends the
# script with exit code 69 if none is of the release.
find_clang() {
  for tool in ${2:-$1-$clang_release $1}; do
    case $("$tool" --version 2>/dev/null) in *"version $clang_release."*) return 0 ;; esac
  done
  found=$("$tool" --version 2>/dev/null | grep -o 'version .*') || found=none
  echo "The C sources need $1 $clang_release (found: $found)." >&2
  echo "Debian 12, Ubuntu 22.04 and 24.04 have it in the package $1-$clang_release, PyPI in $1==$clang_release.0.6." >&2
  exit 69
}
