#!/bin/sh
# Formats the C sources by the files .clang-format. Usage: format-c.sh [--check]
#
# --check changes nothing: it prints the files that are not in the format, and fails if there are any. Each release of
# clang-format formats differently, so only 14 will do: clang-format-14 or clang-format in PATH, or the one that
# VGPU_CLANG_FORMAT names. Exit code 69: there is none.
set -eu
cd "$(dirname "$0")/.."

for clang_format in ${VGPU_CLANG_FORMAT:-clang-format-14 clang-format} ''; do
  [ -n "$clang_format" ] || break
  case $("$clang_format" --version 2>/dev/null) in *'version 14.'*) break ;; esac
done
if [ -z "$clang_format" ]; then
  found=$(clang-format --version 2>/dev/null) || found=none
  echo "The C sources are formatted by clang-format 14 (found: $found)." >&2
  echo "Debian 12, Ubuntu 22.04 and 24.04 have it in the package clang-format-14, PyPI in clang-format==14.0.6." >&2
  exit 69
fi

# The kernel's code in a directory that has other code, too.
vm=vgpu-kmod/src/test/vm
kernel="$vm/driver.c $vm/gpu.c $vm/other.c"
files=$(find build samples vgpu-* -name target -prune -o -name '*.[ch]' -print | grep -vxF "$(printf '%s\n' $kernel)")

format() {
  "$clang_format" "$@" --style=file $files
  "$clang_format" "$@" --style=file:vgpu-kmod/src/main/c/module/.clang-format $kernel
}

if [ "${1-}" = --check ]; then
  wrong=$(format --dry-run 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: .*\[-Wclang-format-violations\]$/\1/p' | uniq)
  [ -z "$wrong" ] || printf '%s\n' "$wrong"
  [ -z "$wrong" ]
else
  format -i
fi
