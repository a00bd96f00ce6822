#!/bin/sh
# Builds a module's native part for this machine and, where there is a cross compiler, for the other architectures.
# Usage: natives.sh SCRIPT OUT
#
# Runs `SCRIPT OUT` once for each architecture, with VGPU_ARCH, CC, OBJCOPY, READELF and NM set. Without a cross
# compiler an architecture is left out, and this says so; with VGPU_ALL_ARCHITECTURES=1 that is an error. A library is
# chosen at run time by os.arch, from OUT/META-INF/native/linux-ARCHITECTURE.
set -eu
script=$1 out=$2
own=$(uname -m)
sh "$script" "$out"
for arch in x86_64 aarch64; do
  [ "$arch" != "$own" ] || continue
  tools=$arch-linux-gnu
  if ! command -v "$tools-gcc" > /dev/null; then
    rm -rf "$out/META-INF/native/linux-$arch"
    package=gcc-$(echo "$arch" | tr _ -)-linux-gnu
    echo "left out: linux-$arch, for which there is no compiler ($tools-gcc; Debian's package $package)"
    [ -z "${VGPU_ALL_ARCHITECTURES-}" ] || exit 1
    continue
  fi
  VGPU_ARCH=$arch CC=$tools-gcc OBJCOPY=$tools-objcopy READELF=$tools-readelf NM=$tools-nm sh "$script" "$out"
done
