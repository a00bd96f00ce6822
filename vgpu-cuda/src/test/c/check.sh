#!/bin/sh
# What can be checked without running the hook. Usage: check.sh WHAT
# WHAT: layout | exports LIBRARY | nvml-exports LIBRARY | glibc LIBRARY | header [CUDA_INCLUDE]
#       | nvml-header [NVML_INCLUDE] | versions [FILE] | orders
#   layout   prints the shared region as C has it
#   exports  the library exports exactly the functions of vgpu_hooks.def, and our own
#   nvml-exports  what stands in for NVML exports exactly the functions of vgpu_nvml.def, and its marker
#   glibc    the library loads with glibc 2.17 and needs no other library (the build refuses one that does not)
#   header   our declarations and the list of functions against cuda.h; says so if there is none
#   nvml-header  the same of what stands in for NVML, against nvml.h
#   orders   loads that pair with other processes' stores are ordered where the machine would reorder them (aarch64)
#   versions [FILE]  the list of functions against those of all headers from 11.0 on, and every row has a class
set -eu
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

listed() {
  sed -n 's/^\(PASS\|HANDLED\|SYNC_WORK\|ASYNC_WORK\)(\([A-Za-z0-9_]*\).*/\2/p' "$main/shm/vgpu_hooks.def" | sort
}

# name, class, since
classified() {
  sed -n -e 's/^PASS(\([A-Za-z0-9_]*\), \([A-Z_]*\), \([0-9]*\))$/\1 \2 \3/p' \
    -e 's/^HANDLED(\([A-Za-z0-9_]*\), \([A-Z_]*\), [A-Za-z0-9_]*, \([0-9]*\), [01], (.*))$/\1 \2 \3/p' \
    -e 's/^A\{0,1\}SYNC_WORK(\([A-Za-z0-9_]*\), [A-Za-z0-9_]*, \([0-9]*\), [01], (.*))$/\1 WORK \2/p' "$main/shm/vgpu_hooks.def"
}

case $1 in
  layout)
    $cc -std=c11 -I"$main/shm" "$here/layout_probe.c" -o "$work/probe"
    "$work/probe"
    ;;
  exports)
    ${NM:-nm} -D --defined-only "$2" | sed 's/.* //' | sort > "$work/exported"
    { listed; printf 'dlopen\ndlmopen\nvgpu_attach\nvgpu_hook_version\nvgpu_tenant_add\nvgpu_tenant_bind\nvgpu_tenant_drop\n'; } | sort > "$work/listed"
    [ -z "$(listed | uniq -d)" ] || { echo "listed twice: $(listed | uniq -d)" >&2; exit 1; }
    diff "$work/listed" "$work/exported"
    echo "$(listed | wc -l) functions"
    ;;
  nvml-exports)
    ${NM:-nm} -D --defined-only "$2" | sed 's/.* //' | sort > "$work/exported"
    sed -n 's/^\(PASS\|DENY\|HIDE\|HANDLED\|TEXT\)(\([A-Za-z0-9_]*\).*/\2/p' "$main/shm/vgpu_nvml.def" > "$work/functions"
    { cat "$work/functions"; echo vgpu_nvml_version; } | sort > "$work/listed"
    [ -z "$(uniq -d "$work/listed")" ] || { echo "listed twice: $(uniq -d "$work/listed")" >&2; exit 1; }
    diff "$work/listed" "$work/exported"
    echo "$(wc -l < "$work/functions") functions"
    ;;
  glibc)
    sh "$main/c/check_library.sh" "$2"
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
    version=$(sed -n 's/^#define CUDA_VERSION *\([0-9]*\).*/\1/p' "$include/cuda.h")
    classified | awk -v version="$version" 'NR == FNR { since[$1] = $3; next } since[$1] > version { print $1, since[$1] }' - "$work/header" > "$work/late"
    if [ -s "$work/late" ]; then
      echo "vgpu_hooks.def has these only from a later version on than the header's, $version:" && cat "$work/late"
      exit 1
    fi >&2
    echo "$(wc -l < "$work/header") functions of the header"
    ;;
  nvml-header)
    include=${2:-/usr/local/cuda/include}
    if [ ! -f "$include/nvml.h" ]; then
      echo "no nvml.h in $include"
      exit 0
    fi
    $cc -std=c11 -fsyntax-only -isystem "$include" "$here/nvml_abi_check.c"
    grep -oE 'DECLDIR +nvml[A-Za-z0-9_]+' "$include/nvml.h" | sed 's/.* //' | sort -u > "$work/header"
    sed -n 's/^\(PASS\|DENY\|HIDE\|HANDLED\|TEXT\)(\([A-Za-z0-9_]*\).*/\2/p' "$main/shm/vgpu_nvml.def" | sort > "$work/listed"
    missing=$(comm -13 "$work/listed" "$work/header")
    if [ -n "$missing" ]; then
      echo "nvml.h has functions that vgpu_nvml.def has not:" $missing >&2
      exit 1
    fi
    echo "$(wc -l < "$work/header") functions of the header"
    ;;
  orders)
    # On x86-64 every load is one. Plain loads of aarch64 (ldr) may be done before an earlier store or load.
    while read -r file function expected; do
      found=$(${VGPU_AARCH64_CC:-aarch64-linux-gnu-gcc} -std=c11 -O1 -fno-inline -fPIC -include "$main/c/system/compat.h" \
        -I"$main/shm" -I"$main/../../../vgpu-kmod/src/main/c" -S "$main/c/$file" -o - |
        awk -v label="$function:" '$0 == label { inside = 1 } inside && $1 ~ /^ldap?u?r/ && $1 != "ldr" { count++ }
          inside && $1 == ".size" { exit } END { print count + 0 }')
      [ "$found" -ge "$expected" ] || { echo "$file: $function has $found ordered loads, not $expected" >&2; failed=1; }
    done << 'END'
lane/peers.c vgpu__peers_begin 1
lane/peers.c vgpu__look 1
lane/busy.c vgpu__seat_wants_to_know 2
lane/busy.c vgpu__seat_rests 1
memory/ledger.c vgpu__is_charged 1
top/monitor.c vgpu__is_quiet 2
END
    exit "${failed:-0}"
    ;;
  versions)
    classified > "$work/classes"
    sort "${2:-$here/driver_functions.txt}" | grep -v '^#' > "$work/known"
    awk 'NR == FNR { class[$1] = $2; next } !($1 in class)' "$work/classes" "$work/known" > "$work/missing"
    if [ -s "$work/missing" ]; then
      echo "vgpu_hooks.def has not these functions (name, first version, last version):" && cat "$work/missing"
      exit 1
    fi >&2
    if grep -vE ' (MEM_PLUS|MEM_MINUS|WORK|WAITS|QUERY|PASS) [0-9]+$' "$work/classes" >&2 || [ "$(listed | wc -l)" != "$(wc -l < "$work/classes")" ]; then
      echo "a row of vgpu_hooks.def has no class or no version" >&2
      exit 1
    fi
    for class in MEM_PLUS MEM_MINUS WORK WAITS QUERY PASS; do
      echo "$class $(grep -c " $class " "$work/classes")"
    done
    ;;
esac
