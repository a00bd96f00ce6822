#!/bin/sh
# Builds and runs the tests of what the hook charges, over the emulated driver.
# Usage: run_memory.sh KIND WORK HOOK [ROLE...], KIND: plain, asan, tsan.
# Work files go to the folder WORK; EMULATOR may name a libcuda.so.1 of vgpu-emulator, else one is built there.
set -eu
kind=$1 work=$2 hook=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=vgpu-cuda/src/test/c/kinds.sh
. "$here/kinds.sh"
mkdir -p "$work"
if [ -z "${EMULATOR-}" ]; then
  sh "$here/../../../../vgpu-emulator/src/main/c/build.sh" "$work/emulator/classes"
  EMULATOR=$work/emulator/classes/META-INF/native/linux-$arch/libcuda.so.1
fi
tests=
for source in test_memory roles_memory roles_pools roles_measured roles_green roles_ipc roles_inputs \
  roles_replay roles_legacy roles_gang roles_movable delays fake_seat; do
  tests="$tests $here/$source.c"
done
if [ "$kind" = plain ]; then
  # shellcheck disable=SC2086
  $cc $flags $tests -o "$work/test_memory" -ldl
else
  compile_hook
  # shellcheck disable=SC2086
  $cc $flags $sanitize -include "$main/c/system/compat.h" $tests $hook_objects -o "$work/test_memory" -rdynamic -ldl
  hook=-
fi
# shellcheck disable=SC2086 # a list of words
exec timeout 300 ${VGPU_TEST_RUNNER-} "$work/test_memory" "$hook" "$EMULATOR" "$@"
