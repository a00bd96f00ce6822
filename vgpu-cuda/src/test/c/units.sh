#!/bin/sh
# Builds and runs the tests of single sources of the hook. Usage: units.sh KIND WORK [UNIT...], KIND: plain, asan.
# Work files go to the folder WORK. VGPU_TEST_RUNNER runs the programs, if they are for another architecture.
set -eu
kind=$1 work=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main
mkdir -p "$work"
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -pthread -I$main/shm"
flags="$flags -I$main/../../../vgpu-kmod/src/main/c"
[ "$kind" = plain ] || flags="$flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -DVGPU_SANITIZED"
[ $# -ne 0 ] || set -- memory/ledger memory/measure turn/gate system/system
for unit; do
  name=${unit#*/}
  # shellcheck disable=SC2086
  ${CC:-cc} $flags -include "$main/c/system/compat.h" "$here/unit_$name.c" "$main/c/$unit.c" -o "$work/unit_$name"
  # shellcheck disable=SC2086
  timeout 60 ${VGPU_TEST_RUNNER-} "$work/unit_$name"
done
