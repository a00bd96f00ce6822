#!/bin/sh
# Formats the C sources by the files .clang-format. Usage: format-c.sh [--check]
#
# --check changes nothing: it prints the files that are not in the format, and fails if there are any. Takes the
# clang-format of clang.sh's release in PATH, or the one that VGPU_CLANG_FORMAT names. Exit code 69: there is none.
set -eu
cd "$(dirname "$0")/.."

. build/clang.sh
find_clang clang-format "${VGPU_CLANG_FORMAT-}"

# The kernel's code in a directory that has other code, too.
vm=vgpu-kmod/src/test/vm
kernel="$vm/driver.c $vm/gpu.c $vm/other.c"
files=$(find build samples vgpu-* -name target -prune -o -name '*.[ch]' -print | grep -vxF "$(printf '%s\n' $kernel)")

format() {
  "$tool" "$@" --style=file $files
  "$tool" "$@" --style=file:vgpu-kmod/src/main/c/module/.clang-format $kernel
}

if [ "${1-}" = --check ]; then
  wrong=$(format --dry-run 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: .*\[-Wclang-format-violations\]$/\1/p' | uniq)
  [ -z "$wrong" ] || printf '%s\n' "$wrong"
  [ -z "$wrong" ]
else
  format -i
fi
