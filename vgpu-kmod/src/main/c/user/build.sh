#!/bin/sh
# Builds OUT/libvgpu_rm.so and OUT/vgpu-turns. Needs only a C compiler. Usage: build.sh OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
flags="-std=gnu11 -D_GNU_SOURCE=1 -O2 -g -Wall -Wextra -Wconversion -Werror -Wl,-z,relro,-z,now -Wl,--build-id=none"
# shellcheck disable=SC2086
${CC:-cc} $flags -fvisibility=hidden -fPIC -pthread -shared -Wl,-z,defs,-z,nodelete -o "$1/libvgpu_rm.so" \
  "$here/interposer.c" "$here"/../core/*.c -ldl
# shellcheck disable=SC2086
${CC:-cc} $flags -fPIE -pie -o "$1/vgpu-turns" "$here/turns.c" "$here/programs.c" "$here"/../core/*.c
