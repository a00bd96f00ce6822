#!/bin/sh
# What can be checked without running the hook. Usage: check.sh layout | exports LIBRARY | header [CUDA_INCLUDE]
#   layout   prints the shared region as C has it
#   exports  the library exports exactly the functions of vgpu_hooks.def, and our own
#   header   our declarations and the list of functions against cuda.h; says so if there is none
set -eu
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

listed() {
  sed -n 's/^\(PASS\|HANDLED\|SYNC_WORK\|ASYNC_WORK\)(\([A-Za-z0-9_]*\).*/\2/p' "$main/shm/vgpu_hooks.def" | sort
}

case $1 in
  layout)
    $cc -std=c11 -I"$main/shm" "$here/layout_probe.c" -o "$work/probe"
    "$work/probe"
    ;;
  exports)
    nm -D --defined-only "$2" | sed 's/.* //' | sort > "$work/exported"
    { listed; printf 'dlopen\nvgpu_attach\nvgpu_hook_version\n'; } | sort > "$work/listed"
    [ -z "$(listed | uniq -d)" ] || { echo "listed twice: $(listed | uniq -d)" >&2; exit 1; }
    diff "$work/listed" "$work/exported"
    echo "$(listed | wc -l) functions"
    ;;
  header)
    include=${2:-/usr/local/cuda/include}
    if [ ! -f "$include/cuda.h" ]; then
      echo "no cuda.h in $include"
      exit 0
    fi
    $cc -std=c11 -fsyntax-only -I"$include" "$here/abi_check.c"
    # With this macro the header declares the older and the per-thread forms too.
    printf '#define __CUDA_API_VERSION_INTERNAL 1\n#include <cuda.h>\n#include <cudaProfiler.h>\n' |
      $cc -E -P -I"$include" -x c - | grep -oE 'cu[A-Z][A-Za-z0-9_]* *\(' | tr -d ' (' | sort -u > "$work/header"
    listed > "$work/listed"
    missing=$(comm -13 "$work/listed" "$work/header")
    if [ -n "$missing" ]; then
      echo "cuda.h has functions that vgpu_hooks.def has not:" $missing >&2
      exit 1
    fi
    echo "$(wc -l < "$work/header") functions of the header"
    ;;
esac
