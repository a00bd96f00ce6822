#!/usr/bin/env bash
# Makes the bundle of ./vgpu gpu-check: one file that needs only Linux, glibc, sh and tar.
# Usage: pack.sh CLASS_PATH OUT_FILE        (from the checkout; ./vgpu gpu-check --pack calls it)
# It is for this machine's architecture, or for that of the JDK that VGPU_PACK_JDK names.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
MODULES=java.base,java.logging,java.management,java.net.http,java.xml,jdk.jfr,jdk.management,jdk.net,jdk.unsupported,jdk.zipfs
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

# Prints a line NAME="..." of a JDK's file release.
release_value() {
  sed -n "s/^$2=\"\([^\"]*\)\".*/\1/p" "$1/release"
}

# Prints the architecture of a JDK, x86_64 or aarch64.
architecture_of() {
  readelf -h "$1/lib/server/libjvm.so" 2>/dev/null |
    sed -n 's/.*Machine: *\(Advanced Micro Devices X86-64\).*/x86_64/p; s/.*Machine: *AArch64.*/aarch64/p'
}

# Prints the JDKs of this machine that can make a runtime.
jdks_here() {
  local home
  for home in "${JAVA_HOME:-}" /usr/lib/jvm/* /opt/java/* /opt/jdk*; do
    if [ -x "$home/bin/jlink" ] && [ ! -L "$home" ] && [ "$(architecture_of "$home")" = "$(uname -m)" ] &&
      { [ -d "$home/jmods" ] || "$home/bin/jlink" --help 2>/dev/null | grep -q 'run-time image enabled'; }; then
      printf '%s\n' "$home"
    fi
  done
}

# Prints the JDK that needs the oldest glibc.
choose_jdk() {
  local home version
  jdks_here | while read -r home; do
    version=$(glibc_of "$home/lib/server/libjvm.so")
    # What it needs beside glibc (Debian's needs the system's zlib) comes behind those that need nothing.
    if readelf -d "$home/lib/libzip.so" 2>/dev/null | grep -q 'NEEDED.*libz\.'; then
      version=9$version
    fi
    printf '%s %s\n' "$version" "$home"
  done | sort -V | head -n 1 | sed 's/^[^ ]* //'
}

# Prints a JDK of this machine whose jlink can link the modules of another: both have the same feature version.
linking_jdk() {
  local home feature
  feature=$(release_value "$1" JAVA_VERSION)
  feature=${feature%%.*}
  jdks_here | while read -r home; do
    case $(release_value "$home" JAVA_VERSION) in "$feature" | "$feature".*) printf '%s\n' "$home" ;; esac
  done | head -n 1
}

# Sets jdk to the JDK that the runtime comes from, linker to the one that links it, and arch.
find_jdks() {
  jdk=${VGPU_PACK_JDK:-$(choose_jdk)}
  [ -n "$jdk" ] || die "no JDK with jlink is installed; VGPU_PACK_JDK can name one"
  arch=$(architecture_of "$jdk")
  case $arch in
    x86_64 | aarch64) ;;
    *) die "$jdk is no JDK for x86-64 or aarch64" ;;
  esac
  linker=$jdk
  [ "$arch" != "$(uname -m)" ] || return 0
  [ -d "$jdk/jmods" ] || die "$jdk is for $arch, and has no jmods to link a Java runtime from"
  linker=$(linking_jdk "$jdk")
  [ -n "$linker" ] || die "$jdk is a Java $(release_value "$jdk" JAVA_VERSION), and no such JDK for this machine is" \
    "installed, which could link it"
}

make_runtime() {
  local options=-Xshare:auto version zlib from=()
  say "Java runtime for $arch from $jdk"
  version=$(release_value "$jdk" JAVA_VERSION)
  version=${version%%[!0-9]*}
  [ "$version" -lt 22 ] || options="$options --enable-native-access=ALL-UNNAMED"
  [ "$version" -lt 23 ] || options="$options --sun-misc-unsafe-memory-access=allow"
  [ "$jdk" = "$linker" ] || from=(--module-path "$jdk/jmods")
  "$linker/bin/jlink" ${from[@]+"${from[@]}"} --add-modules "$MODULES" --no-header-files --no-man-pages \
    --strip-java-debug-attributes --add-options "$options" --output "$stage/runtime"
  readelf -d "$stage/runtime/lib/libzip.so" | grep -q 'NEEDED.*libz\.so\.1' || return 0
  if [ "$arch" = "$(uname -m)" ]; then
    zlib=$(ldd "$stage/runtime/lib/libzip.so" | sed -n 's/.*libz\.so\.1 => \([^ ]*\).*/\1/p')
  else
    # Of the packages that were unpacked beside Debian's JDK, if zlib1g was one.
    zlib=${jdk%/usr/lib/jvm/*}/lib/$arch-linux-gnu/libz.so.1
  fi
  if [ -e "$zlib" ]; then
    cp -L "$zlib" "$stage/runtime/lib/"
  else
    say "there is no $zlib: the machine of the bundle must have libz.so.1 (Debian: zlib1g)"
  fi
}

# Prints the newest glibc that a file of the bundle needs.
glibc_of_bundle() {
  find "$stage/runtime" "$stage/programs" -type f \( -name '*.so' -o -path '*/bin/*' -o -path '*/programs/*' \) \
    -print | while read -r file; do glibc_of "$file"; done | sort -V | tail -n 1
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

make_programs() {
  "$here/programs.sh" "$arch" "$stage/programs"
  cp "$root/samples/cuda-programs/src/main/python/spin.py" "$root/vgpu-bench/src/main/python/"*.py "$stage/programs/"
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
find_jdks
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
say "for Linux on $arch with glibc $(glibc_of_bundle) or newer"
say "$2: $((bytes / 1048576)).$((bytes % 1048576 * 10 / 1048576)) MiB"
[ "$bytes" -le $((MOST_MIB * 1048576)) ] || die "that is more than $MOST_MIB MiB"
