#!/bin/sh
# Random input for the hook's parsers under sanitizers. Usage: fuzz.sh WORK SECONDS SEED [TARGET...]
# SECONDS is for each target. Five minutes in all, with a seed of the day: fuzz.sh /tmp/fuzz 100 "$(date +%j)"
set -eu
work=$1 seconds=$2 seed=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main
mkdir -p "$work"
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -pthread -fno-omit-frame-pointer"
flags="$flags -I$main/shm -I$main/../../../vgpu-kmod/src/main/c"
# shellcheck disable=SC2086
${CC:-cc} $flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -DVGPU_SANITIZED -include "$main/c/system/compat.h" \
  "$here/fuzz_hook.c" "$main"/c/*/*.c "$main"/c/*/*-"$(uname -m)".S -o "$work/fuzz_hook" -rdynamic -ldl
export ASAN_OPTIONS=detect_leaks=0:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1
for target in ${*:-ioctl region socket}; do
  timeout $((seconds + 60)) "$work/fuzz_hook" "$target" "$seconds" "$seed"
done
