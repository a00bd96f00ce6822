#!/bin/sh
# Random requests to the core, under sanitizers. Usage: fuzz.sh WORK [REQUESTS [SEED]]; default: ten million, random seed.
set -eu
work=$1 requests=${2:-10000000} seed=${3:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -Wconversion -Werror -pthread -fno-omit-frame-pointer"
# shellcheck disable=SC2086
${CC:-cc} $flags -fsanitize=address,undefined -fno-sanitize-recover=undefined \
  "$here/fuzz_core.c" "$here/bed.c" "$here"/../model/*.c "$here"/../../main/c/core/*.c -o "$work/fuzz_core"
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=print_stacktrace=1
exec "$work/fuzz_core" "$requests" "$seed"
