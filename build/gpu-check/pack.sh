#!/usr/bin/env bash
# Makes the bundle of ./vgpu gpu-check: one file that needs only Linux on x86-64, glibc from 2.17 on, sh and tar.
# Usage: pack.sh CLASS_PATH OUT_FILE        (from the checkout; ./vgpu gpu-check --pack calls it)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
MODULES=java.base,java.logging,java.management,java.net.http,java.xml,jdk.jfr,jdk.management,jdk.unsupported,jdk.zipfs
MOST_MIB=60

say() {
  printf 'gpu-check: %s\n' "$*" >&2
}

die() {
  say "$@"
  exit 1
}

# Prints the newest glibc that a file needs, such as 2.17; 0 if it needs none by version.
glibc_of() {
  LC_ALL=C grep -aoE 'GLIBC_2\.[0-9]+' "$1" | sed 's/GLIBC_//' | sort -uV | tail -n 1 | grep . || echo 0
}

# Prints the JDK that needs the oldest glibc, of those that can make a runtime for here.
choose_jdk() {
  local home version
  for home in "${VGPU_PACK_JDK:-}" "${JAVA_HOME:-}" /usr/lib/jvm/* /opt/java/* /opt/jdk*; do
    if [ -x "$home/bin/jlink" ] && [ -f "$home/lib/server/libjvm.so" ] && [ ! -L "$home" ] &&
      { [ -d "$home/jmods" ] || "$home/bin/jlink" --help 2>/dev/null | grep -q 'run-time image enabled'; }; then
      version=$(glibc_of "$home/lib/server/libjvm.so")
      # What it needs beside glibc (Debian's needs the system's zlib) comes behind those that need nothing.
      if readelf -d "$home/lib/libzip.so" 2>/dev/null | grep -q 'NEEDED.*libz\.'; then
        version=9$version
      fi
      printf '%s %s\n' "$version" "$home"
      [ "$home" != "${VGPU_PACK_JDK:-}" ] || break
    fi
  done | sort -V | head -n 1 | sed 's/^[^ ]* //'
}

make_runtime() {
  local jdk options=-Xshare:auto version zlib
  jdk=$(choose_jdk)
  [ -n "$jdk" ] || die "no JDK with jlink is installed; VGPU_PACK_JDK can name one"
  say "Java runtime from $jdk"
  version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$jdk/release")
  [ "$version" -lt 22 ] || options="$options --enable-native-access=ALL-UNNAMED"
  [ "$version" -lt 23 ] || options="$options --sun-misc-unsafe-memory-access=allow"
  "$jdk/bin/jlink" --add-modules "$MODULES" --no-header-files --no-man-pages --strip-java-debug-attributes \
    --add-options "$options" --output "$stage/runtime"
  if readelf -d "$stage/runtime/lib/libzip.so" | grep -q 'NEEDED.*libz\.so\.1'; then
    zlib=$(ldd "$stage/runtime/lib/libzip.so" | sed -n 's/.*libz\.so\.1 => \([^ ]*\).*/\1/p')
    cp -L "$zlib" "$stage/runtime/lib/"
  fi
}

copy_jars() {
  local jar
  mkdir "$stage/lib"
  printf '%s\n' "$1" | tr : '\n' | while read -r jar; do
    case ${jar##*/} in
      # The demo's plots, and what only compilers read.
      echarts-*.jar | error_prone_annotations-*.jar | j2objc-annotations-*.jar | listenablefuture-*.jar) ;;
      *.jar) cp -n "$jar" "$stage/lib/" ;;
    esac
  done
}

# build NAME SOURCES AND LIBRARIES...: a program that runs with glibc 2.17.
build() {
  local name=$1 newest
  shift
  "${CC:-cc}" -std=c11 -D_GNU_SOURCE= -O2 -fPIE -pie -nostartfiles -include "$here/compat.h" -I"$stage/build" \
    -o "$stage/programs/$name" "$here/start.S" "$@" -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed \
    -lm
  newest=$(readelf --version-info "$stage/programs/$name" | sed -n 's/.*Name: GLIBC_\([0-9.]*\).*/\1/p' | sort -uV |
    awk -F. '$1 > 2 || $2 > 17')
  [ -z "$newest" ] || die "$name would need glibc $newest"
}

# The files that ProgramSource compiles; others beside them are libraries of their own.
program_sources() {
  sed -n 's/^ *"\([a-z0-9_]*\.c\)".*/\1/p' "$root/vgpu-bench/src/main/java/dev/vgpu/bench/harness/ProgramSource.java" |
    sed "s|^|$root/vgpu-bench/src/main/c/|"
}

make_programs() {
  local samples=$root/samples/cuda-programs
  local c=$samples/src/main/c
  mkdir "$stage/programs" "$stage/build"
  cp "$samples/target/programs/build/kernels_ptx.h" "$samples/target/programs/build/libcuda.so.1" "$stage/build/"
  build spin "$c/spin.c" "$c/driver.c" "$c/driver_nolink.c" "$c/program.c"
  build sgemm "$c/sgemm.c" "$c/driver.c" "$c/driver_nolink.c" "$c/program.c"
  for name in hoard burst; do
    build $name "$c/$name.c" "$c/driver.c" "$c/driver_link.c" "$c/program.c" \
      -Wl,--no-as-needed "$stage/build/libcuda.so.1" -Wl,--as-needed
  done
  # shellcheck disable=SC2046 # a list of files
  build gpu_program -I"$root/vgpu-cuda/src/main/shm" $(program_sources)
  cp "$samples/src/main/python/spin.py" "$root/vgpu-bench/src/main/python/"*.py "$stage/programs/"
  rm -r "$stage/build"
}

# Real PTX or not: the driver of a GPU compiles it, the emulator only reads names.
check_kernels() {
  local ptxas gpu
  ptxas=$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)
  if [ ! -x "$ptxas" ]; then
    say "no ptxas here: the kernels are not checked"
    return 0
  fi
  for gpu in sm_75 sm_80 sm_90 sm_100; do
    "$ptxas" --gpu-name $gpu -o /dev/null "$root/samples/cuda-programs/src/main/ptx/kernels.ptx" ||
      die "kernels.ptx does not compile for $gpu"
  done
}

write_scripts() {
  cat >"$stage/vgpu" <<'END'
#!/bin/sh
# vgpu from this bundle.
here=$(CDPATH= cd "$(dirname "$0")" && pwd) || exit 1
VGPU_BUNDLE=$here
export VGPU_BUNDLE
exec "$here/runtime/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData ${VGPU_JAVA_OPTS-} \
  -cp "$here/lib/*" dev.vgpu.cli.VgpuCommand "$@"
END
  cat >"$stage/gpu-check.sh" <<'END'
#!/bin/sh
# Checks vgpu on this machine's GPU: ./gpu-check.sh [--out DIR] [--budget SECONDS] ...; --help says more.
here=$(CDPATH= cd "$(dirname "$0")" && pwd) || exit 1
exec "$here/vgpu" gpu-check "$@"
END
  chmod +x "$stage/vgpu" "$stage/gpu-check.sh"
  {
    git -C "$root" describe --always --dirty 2>/dev/null || echo unknown
    git -C "$root" log -1 --format=%cI 2>/dev/null || true
  } | tr '\n' ' ' >"$stage/VERSION"
}

[ $# -eq 2 ] || die "usage: pack.sh CLASS_PATH OUT_FILE"
[ "$(uname -m)" = x86_64 ] || die "the bundle is for x86-64; this machine is $(uname -m)"
work=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-pack.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
stage=$work/vgpu-gpu-check
mkdir "$stage"
check_kernels
make_runtime
copy_jars "$1"
make_programs
write_scripts
mkdir -p "$(dirname "$2")"
tar -C "$work" --owner=0 --group=0 -cf - vgpu-gpu-check | gzip -9 >"$2.new"
mv "$2.new" "$2"
bytes=$(wc -c <"$2")
say "$2: $((bytes / 1048576)).$((bytes % 1048576 * 10 / 1048576)) MiB"
[ "$bytes" -le $((MOST_MIB * 1048576)) ] || die "that is more than $MOST_MIB MiB"
