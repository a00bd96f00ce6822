#!/bin/sh
# Builds and runs the tests of what the hook charges, over the emulated driver.
# Usage: run_memory.sh KIND WORK HOOK [ROLE...], KIND: plain, asan, tsan.
# Work files go to the folder WORK; EMULATOR may name a libcuda.so.1 of vgpu-emulator, else one is built there.
set -eu
kind=$1 work=$2 hook=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main
mkdir -p "$work"
cc=${CC:-cc}
arch=${VGPU_ARCH:-$(uname -m)}
if [ -z "${EMULATOR-}" ]; then
  sh "$here/../../../../vgpu-emulator/src/main/c/build.sh" "$work/emulator/classes"
  EMULATOR=$work/emulator/classes/META-INF/native/linux-$arch/libcuda.so.1
fi
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -pthread -fno-omit-frame-pointer"
flags="$flags -I$main/shm -I$main/../../../vgpu-kmod/src/main/c"
tests=
for source in test_memory roles_memory roles_pools roles_measured roles_green roles_ipc roles_inputs \
  roles_replay roles_legacy roles_gang roles_movable delays fake_seat; do
  tests="$tests $here/$source.c"
done
case $kind in
  plain) sanitize= ;;
  asan) sanitize="-fsanitize=address,undefined -fno-sanitize-recover=undefined -DVGPU_SANITIZED" ;;
  tsan) sanitize="-fsanitize=thread -DVGPU_SANITIZED" ;;
esac
if [ "$kind" = plain ]; then
  # shellcheck disable=SC2086
  $cc $flags $tests -o "$work/test_memory" -ldl
else
  # The hook's own sources, instrumented, in the program.
  # shellcheck disable=SC2086
  $cc $flags $sanitize -include "$main/c/system/compat.h" $tests "$main"/c/*/*.c "$main"/c/*/*-"$arch".S -o "$work/test_memory" -rdynamic -ldl
  hook=-
fi
export ASAN_OPTIONS=detect_leaks=0:exitcode=99 TSAN_OPTIONS=exitcode=99:die_after_fork=0:atexit_sleep_ms=0:suppressions=$here/tsan.supp UBSAN_OPTIONS=print_stacktrace=1
# shellcheck disable=SC2086 # a list of words
exec timeout 300 ${VGPU_TEST_RUNNER-} "$work/test_memory" "$hook" "$EMULATOR" "$@"
