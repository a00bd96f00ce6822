#!/bin/sh
# Builds the native part into OUT/META-INF/native/linux-ARCHITECTURE. Usage: build.sh OUT
# CFLAGS may be set, for example CFLAGS='-O1 -g -fsanitize=address,undefined'. VGPU_ARCH, CC, NM: build/natives.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
arch=${VGPU_ARCH:-$(uname -m)}
target=$1/META-INF/native/linux-$arch
work=$1/../emulator-native-$arch
: "${CC:=cc}"
: "${CFLAGS:=-O2}"
flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wconversion -Werror -fvisibility=hidden -fPIC -I$here $CFLAGS"
[ "$arch" != aarch64 ] || flags="$flags -mbranch-protection=standard"
link="-shared -Wl,-Bsymbolic,-z,defs,-z,relro,-z,now,--as-needed"
common="base/log base/settings base/trusted $(cd "$here" && echo gpu/*.c | sed 's/\.c//g')"
driver="base/fail base/heap base/machine_code base/ptx base/shared_memory
  $(cd "$here" && echo rm/*.c driver/*.c api/*.c | sed 's/\.c//g')"
nvml=$(cd "$here" && echo nvml/*.c | sed 's/\.c//g')

# Nothing to do if no source is newer than the last build.
if [ -f "$work/stamp" ] && [ "$(cat "$work/stamp")" = "$CC $flags" ] && [ -f "$target/nvidia-cuda-mps-control.sha256" ] &&
  [ -z "$(find "$here" -newer "$work/stamp" -print | head -n 1)" ]; then
  exit 0
fi
mkdir -p "$target"
for layer in $(cat "$here/layers"); do mkdir -p "$work/$layer"; done
rm -f "$work/stamp"
objects() {
  for name in "$@"; do
    printf '%s ' "$work/$name.c.o"
  done
}
# Two compilers at a time.
for name in $common $driver $nvml mps/control; do
  printf '%s\n' "$name"
done | xargs -P 2 -I NAME $CC $flags -c "$here/NAME.c" -o "$work/NAME.c.o"
"$here/../../../../build/check-layers.sh" "$here" "$work"
# nodelete: the library may have a running thread for host functions.
$CC $flags $link -Wl,-z,nodelete -Wl,-soname,libcuda.so.1 -o "$target/libcuda.so.1" $(objects $common $driver) -lpthread
$CC $flags $link -Wl,-soname,libnvidia-ml.so.1 -o "$target/libnvidia-ml.so.1" $(objects $common $nvml) -lpthread
$CC $flags -o "$target/nvidia-cuda-mps-control" "$work/mps/control.c.o"
cd "$target"
for library in libcuda.so.1 libnvidia-ml.so.1 nvidia-cuda-mps-control; do
  sha256sum "$library" | cut -d ' ' -f 1 > "$library.sha256"
done
printf '%s' "$CC $flags" > "$work/stamp"
