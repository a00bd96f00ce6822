#!/bin/sh
# Random input for the hook's parsers under sanitizers. Usage: fuzz.sh WORK SECONDS SEED [TARGET...]
# SECONDS is for each target. Five minutes in all, with a seed of the day: fuzz.sh /tmp/fuzz 100 "$(date +%j)"
set -eu
kind=asan work=$1 seconds=$2 seed=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=vgpu-cuda/src/test/c/kinds.sh
. "$here/kinds.sh"
mkdir -p "$work"
compile_hook
# shellcheck disable=SC2086
$cc $flags $sanitize -include "$main/c/system/compat.h" "$here/fuzz_hook.c" $hook_objects -o "$work/fuzz_hook" \
  -rdynamic -ldl
for target in ${*:-ioctl region socket}; do
  timeout $((seconds + 60)) "$work/fuzz_hook" "$target" "$seconds" "$seed"
done
