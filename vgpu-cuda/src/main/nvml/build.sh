#!/bin/sh
# Builds libvgpu_nvml.so into OUT/META-INF/native/linux-ARCHITECTURE. Usage: build.sh OUT. VGPU_ARCH, CC, OBJCOPY,
# READELF: build/natives.sh.
#
# Needs a C compiler and binutils, nothing of NVIDIA. Refuses to make a library that needs a newer glibc than 2.17, or
# another library than glibc's own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
arch=${VGPU_ARCH:-$(uname -m)}
out=$1/META-INF/native/linux-$arch
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc=${CC:-cc}
flags="-std=c11 -O2 -g -Wall -Wextra -Wpedantic -Wconversion -Werror -fvisibility=hidden -fPIC -pthread -fno-plt"
flags="$flags -include $here/../c/system/compat.h -I$here -I$here/../shm"
[ "$arch" != aarch64 ] || flags="$flags -mbranch-protection=standard"
{
  echo '{ global:'
  sed -n 's/^\(PASS\|DENY\|HIDE\|HANDLED\|TEXT\)(\([A-Za-z0-9_]*\).*/  \2;/p' "$here/../shm/vgpu_nvml.def"
  echo '  vgpu_nvml_version;'
  echo 'local: *; };'
} > "$work/exports.map"

library=$work/libvgpu_nvml.so
$cc -c -I"$here/../shm" "$here/trampolines-$arch.S" -o "$work/trampolines.o"
# shellcheck disable=SC2086
$cc $flags -shared -o "$library" "$here"/*.c "$here/../c/system/shown.c" "$work/trampolines.o" -Wl,-soname,libnvidia-ml.so.1 \
  -Wl,--version-script="$work/exports.map" -Wl,-z,defs,-z,relro,-z,now,-z,nodelete,-z,noexecstack -Wl,--build-id=none \
  -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0
"$here/../c/check_library.sh" "$library"
${OBJCOPY:-objcopy} --strip-debug "$library"
cp "$library" "$out/libvgpu_nvml.so.new"
mv "$out/libvgpu_nvml.so.new" "$out/libvgpu_nvml.so"
(cd "$out" && sha256sum libvgpu_nvml.so | cut -d' ' -f1 > libvgpu_nvml.so.sha256)
