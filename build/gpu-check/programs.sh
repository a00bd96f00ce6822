#!/usr/bin/env bash
# Builds the programs of gpu-check's bundle, for glibc 2.17. Usage: programs.sh ARCHITECTURE DIRECTORY
# For another architecture than this machine's it needs Debian's cross compiler. CC names another compiler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
arch=$1 out=$2
samples=$root/samples/cuda-programs
c=$samples/src/main/c
user=$root/vgpu-kmod/src/main/c/user

die() {
  printf 'gpu-check: %s\n' "$*" >&2
  exit 1
}

# Sets CC to a compiler for the architecture.
choose_compiler() {
  [ -z "${CC-}" ] || return 0
  CC=cc
  [ "$arch" != "$(uname -m)" ] || return 0
  CC=$arch-linux-gnu-gcc
  command -v "$CC" >/dev/null || die "no $CC (Debian: gcc-${arch/_/-}-linux-gnu and the C library for it)"
}

# Fails if a file needs a newer glibc than 2.17.
check_glibc() {
  local newest
  newest=$(readelf --version-info "$out/$1" | sed -n 's/.*Name: GLIBC_\([0-9.]*\).*/\1/p' | sort -uV |
    awk -F. '$1 > 2 || $2 > 17')
  [ -z "$newest" ] || die "$1 would need glibc $newest"
}

# build NAME SOURCES AND LIBRARIES...: a program that runs with glibc 2.17.
build() {
  local name=$1
  shift
  # shellcheck disable=SC2086 # CC is a list of words
  $CC -std=c11 -D_GNU_SOURCE= -O2 -fPIE -pie -nostartfiles -include "$here/compat.h" -I"$work" \
    -o "$out/$name" "$here/start.S" "$@" -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed -lm
  check_glibc "$name"
}

# The files that ProgramSource compiles; others beside them are libraries of their own.
program_sources() {
  sed -n 's/^ *"\([a-z0-9_]*\.c\)".*/\1/p' "$root/vgpu-bench/src/main/java/dev/vgpu/bench/harness/ProgramSource.java" |
    sed "s|^|$root/vgpu-bench/src/main/c/|"
}

choose_compiler
mkdir -p "$out"
work=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-programs.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
cp "$samples/target/programs/build/kernels_ptx.h" "$work/"
# shellcheck disable=SC2086 # CC is a list of words
$CC -std=c11 -O2 -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.1" "$c/driver_stub.c"
build spin "$c/spin.c" "$c/driver.c" "$c/driver_nolink.c" "$c/program.c"
build sgemm "$c/sgemm.c" "$c/driver.c" "$c/driver_nolink.c" "$c/program.c"
for name in hoard burst; do
  build $name "$c/$name.c" "$c/driver.c" "$c/driver_link.c" "$c/program.c" \
    -Wl,--no-as-needed "$work/libcuda.so.1" -Wl,--as-needed
done
# shellcheck disable=SC2046 # a list of files
build gpu_program -I"$root/vgpu-cuda/src/main/shm" $(program_sources)
CC="$CC -include $here/compat.h" sh "$user/build.sh" "$out"
check_glibc libvgpu_rm.so
# The compiler's own start of a program, with which build.sh has linked it, asks for a newer C library.
build vgpu-turns "$user/turns.c" "$user/programs.c" "$user"/../core/*.c
