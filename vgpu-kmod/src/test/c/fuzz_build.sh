#!/bin/sh
# Builds fuzz_core, in which the core reports what it reaches. Usage: fuzz_build.sh WORK [FLAG...]
set -eu
work=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -Wconversion -Werror -pthread -fno-omit-frame-pointer"
# shellcheck disable=SC2086
(mkdir -p "$work/fuzz" && cd "$work/fuzz" &&
  ${CC:-cc} $flags "$@" -fsanitize-coverage=trace-pc -c "$here"/../../main/c/core/*.c)
# shellcheck disable=SC2086
${CC:-cc} $flags "$@" "$here/fuzz_core.c" "$here/fuzz_inputs.c" "$here/bed.c" "$here"/../model/*.c "$work"/fuzz/*.o \
  -o "$work/fuzz_core"
