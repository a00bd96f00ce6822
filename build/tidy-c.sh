#!/bin/sh
# Runs clang-tidy over the C sources of the products, with the checks of .clang-tidy. Usage: tidy-c.sh [FILE...]
#
# Prints what it finds, and fails if that is anything. A file in which it found nothing is not checked again until it, a
# header or a check changes (target/tidy). Takes the clang-tidy of clang.sh's release in PATH, or the one that
# VGPU_CLANG_TIDY names. Exit code 69: there is none.
set -eu
cd "$(dirname "$0")/.."

. build/clang.sh
find_clang clang-tidy "${VGPU_CLANG_TIDY-}"

# As the build scripts compile them. The kernel's code is checked by its compiler alone.
tidy() {
  flags='-std=c11'
  case $1 in
    vgpu-cuda/*) flags="$flags -include vgpu-cuda/src/main/c/system/compat.h -Ivgpu-cuda/src/main/nvml" ;;
    *) flags='-std=gnu11 -D_GNU_SOURCE=1' ;;
  esac
  for place in vgpu-cuda/src/main/shm vgpu-kmod/src/main/c vgpu-emulator/src/main/c samples/cuda-programs/src/main/c; do
    flags="$flags -I$place"
  done
  "$tool" --quiet "$1" -- $flags 2>/dev/null
}

if [ "${1-}" = -- ]; then
  common=$2 failed=0
  shift 2
  for file in "$@"; do
    clean=target/tidy/$({ echo "$common $file" && cat "$file"; } | sha256sum | cut -c 1-40)
    if [ -e "$clean" ]; then continue; fi
    if tidy "$file"; then : >"$clean"; else failed=1; fi
  done
  exit $failed
fi
if grep -rn NOLINT samples vgpu-* --include='*.[ch]' --exclude-dir=target |
  grep -vE 'NOLINT[A-Z]*\([a-z0-9,-]+\): ..' | sed 's/$/ error: a NOLINT names the check and the reason/' | grep .; then
  exit 1
fi
[ $# -ne 0 ] || set -- vgpu-cuda/src/main/*/*.c vgpu-cuda/src/main/c/*/*.c vgpu-emulator/src/main/c/*/*.c \
  vgpu-kmod/src/main/c/core/*.c vgpu-kmod/src/main/c/user/*.c vgpu-nvml/src/main/c/*.c vgpu-bench/src/main/c/*.c \
  $(ls samples/cuda-programs/src/main/c/*.c | grep -v /driver.c) # which includes what the build makes
mkdir -p target/tidy
find target/tidy -type f -mtime +30 -delete
common=$(find .clang-tidy build/clang.sh build/tidy-c.sh samples vgpu-* -name target -prune -o -type f \
  \( -name '*.h' -o -name '*.def' -o -name .clang-tidy -o -path 'build/*' \) -print |
  LC_ALL=C sort | xargs cat | sha256sum | cut -c 1-40)
printf '%s\n' "$@" | xargs -P 2 -n 8 sh build/tidy-c.sh -- "$common"
