#!/bin/sh
# Builds the native part into OUT/META-INF/native/linux-ARCHITECTURE: the hook, and what stands in for NVML.
# Usage: build.sh OUT. VGPU_ARCH, CC, OBJCOPY, READELF and NM: build/natives.sh.
#
# Needs a C compiler and binutils, nothing of CUDA. Refuses to make a library that needs a newer glibc than 2.17, or
# another library than glibc's own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
arch=${VGPU_ARCH:-$(uname -m)}
out=$1/META-INF/native/linux-$arch
cc=${CC:-cc}
hook=$here

# Nothing to do if no source is newer than the last build.
stamp=$1/../hook-native-$arch.stamp
newer() {
  find "$here" "$here/../shm" "$here/../checkpoint" "$here/../nvml" "$here/../../../../vgpu-kmod/src/main/c" \
    "$here/../../../../build/check-layers.sh" -newer "$stamp" -print | head -n 1
}
if [ -f "$out/libvgpu_nvml.so.sha256" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$cc" ] && [ -z "$(newer)" ]; then
  exit 0
fi
rm -f "$stamp"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/start"

# shellcheck source=vgpu-cuda/src/main/c/hook.sh
. "$here/hook.sh"
flags="$hook_flags $hook_warnings -g"
# Landing pads and signed return addresses: hints, which older processors take for no-operations.
[ "$arch" != aarch64 ] || flags="$flags -mbranch-protection=standard"

hook_exports > "$work/exports.map"

objects=
pids=
for layer in $(cat "$here/layers"); do mkdir "$work/$layer"; done
for source in "$here"/*/*.c "$here"/*/*-"$arch".S; do
  object=$work/${source#"$here"/}.o
  # shellcheck disable=SC2086
  case $source in
    *.S) $cc -c -I"$here/../shm" "$source" -o "$object" ;;
    *) $cc $flags -c "$source" -o "$object" & pids="$pids $!" ;;
  esac
  objects="$objects $object"
done
for pid in $pids; do wait "$pid"; done
"$here/../../../../build/check-layers.sh" "$here" "$work"

library=$work/libvgpu_cuda.so
# What the hook itself looks for by a bare name lies beside it, if at all: dlopen.c.
# shellcheck disable=SC2086
$cc -shared -o "$library" $objects $hook_link -Wl,--version-script="$work/exports.map" \
  -Wl,--disable-new-dtags,-rpath,'$ORIGIN' -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0

program=$work/vgpu-checkpoint
$cc -c "$here/../checkpoint/start-$arch.S" -o "$work/start.o"
# shellcheck disable=SC2086
$cc $(echo "$flags" | sed 's/-fPIC/-fPIE/; s/-ftls-model=initial-exec//') -pie -nostartfiles -o "$program" \
  "$here/../checkpoint/checkpoint.c" "$here/../checkpoint/pages.c" "$work/start.o" -Wl,-z,relro,-z,now,-z,noexecstack \
  -Wl,--build-id=none -Wl,--no-as-needed -l:libdl.so.2

for made in "$library" "$program"; do
  name=$(basename "$made")
  "$here/check_library.sh" "$made"
  ${OBJCOPY:-objcopy} --strip-debug "$made"
  cp "$made" "$out/$name.new"
  mv "$out/$name.new" "$out/$name"
  (cd "$out" && sha256sum "$name" | cut -d' ' -f1 > "$name.sha256")
done

"$here/../nvml/build.sh" "$1"
printf '%s' "$cc" >"$stamp"
touch -r "$work/start" "$stamp" # what changes while it builds is newer
