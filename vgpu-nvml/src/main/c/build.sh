#!/bin/sh
# Builds the native part into OUT/META-INF/native/linux-ARCHITECTURE. Usage: build.sh OUT. VGPU_ARCH and
# CC: build/natives.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$1/META-INF/native/linux-${VGPU_ARCH:-$(uname -m)}
library=$target/libvgpu_calls.so
if [ -f "$library" ] && [ -z "$(find "$here" -newer "$library" -type f)" ]; then
  exit 0
fi
mkdir -p "$target"
${CC:-cc} -std=c11 -O2 -Wall -Wextra -Wpedantic -Wconversion -Werror -fvisibility=hidden -fPIC -shared \
  -Wl,-z,defs,-z,relro,-z,now -o "$library" "$here/native_calls.c" -ldl
