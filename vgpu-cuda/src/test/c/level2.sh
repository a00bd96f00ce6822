#!/bin/sh
# Builds and runs the tests of preemption inside kernels, over the emulated driver.
# Usage: level2.sh WORK HOOK [TEST...]. EMULATOR may name a libcuda.so.1 of vgpu-emulator, else one is built in WORK.
set -eu
work=$1 hook=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main
mkdir -p "$work"
if [ -z "${EMULATOR-}" ]; then
  sh "$here/../../../../vgpu-emulator/src/main/c/build.sh" "$work/emulator"
  EMULATOR=$work/emulator/META-INF/native/linux-${VGPU_ARCH:-$(uname -m)}/libcuda.so.1
fi
${CC:-cc} -std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -Wno-format-truncation -pthread -I"$main/shm" "$here/test_level2.c" \
  "$here/roles_level2.c" "$here/fake_seat.c" -o "$work/test_level2" -ldl
exec timeout 300 "$work/test_level2" "$hook" "$EMULATOR" "$@"
