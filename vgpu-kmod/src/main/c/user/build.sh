#!/bin/sh
# Builds OUT/libvgpu_rm.so. Needs only a C compiler. Usage: build.sh OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
${CC:-cc} -std=gnu11 -D_GNU_SOURCE=1 -O2 -g -Wall -Wextra -Wconversion -Werror -fvisibility=hidden -fPIC -pthread -shared \
  -Wl,-z,defs,-z,relro,-z,now,-z,nodelete -Wl,--build-id=none -o "$1/libvgpu_rm.so" \
  "$here/interposer.c" "$here"/../core/*.c -ldl
