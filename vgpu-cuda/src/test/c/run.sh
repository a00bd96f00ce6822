#!/bin/sh
# Builds and runs the C tests. Usage: run.sh KIND WORK HOOK [TEST...], KIND: plain, large-pages, asan, tsan.
# large-pages: the same as plain, but memory can be mapped only as on a kernel with pages of 64 KiB.
# Work files go to the folder WORK. VGPU_TEST_RUNNER runs the program, if it is for another architecture.
set -eu
kind=$1 work=$2 hook=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main
mkdir -p "$work"
cc=${CC:-cc}
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -pthread -fno-omit-frame-pointer"
flags="$flags -I$main/shm -I$main/../../../vgpu-kmod/src/main/c"
tests=
for source in test_hook test_gate test_express test_storm test_tenants test_work roles roles_churn roles_tenants \
  roles_work roles_charged roles_graphs roles_process roles_denied roles_slips delays fake_seat; do
  tests="$tests $here/$source.c"
done
case $kind in
  plain | large-pages) sanitize= ;;
  asan) sanitize="-fsanitize=address,undefined -fno-sanitize-recover=undefined -DVGPU_SANITIZED" ;;
  tsan) sanitize="-fsanitize=thread -DVGPU_SANITIZED" ;;
esac
# shellcheck disable=SC2086
$cc $flags -Wno-format-truncation -fvisibility=hidden -fPIC -shared -Wl,-Bsymbolic,-soname,libcuda_stub.so $sanitize "$here/stub_driver.c" "$here/stub_work.c" -o "$work/libcuda_stub.so"
# shellcheck disable=SC2086
$cc $flags -fvisibility=hidden -fPIC -shared "$here/stub_nvml.c" -o "$work/libnvml_stub.so"
if [ -z "$sanitize" ]; then
  # shellcheck disable=SC2086
  $cc $flags $tests -o "$work/test_hook" "$hook" -ldl
  cp -f "$hook" "$work/libcuda.so.1"
  export LD_LIBRARY_PATH="$work"
else
  # The hook's own sources, instrumented, in the program: a sanitizer must see both sides.
  # shellcheck disable=SC2086
  $cc $flags $sanitize -include "$main/c/system/compat.h" $tests "$main"/c/*/*.c "$main"/c/*/*-"${VGPU_ARCH:-$(uname -m)}".S -o "$work/test_hook" -rdynamic -ldl
  hook=-
fi
export ASAN_OPTIONS=detect_leaks=0:exitcode=99 TSAN_OPTIONS=exitcode=99:die_after_fork=0:atexit_sleep_ms=0:suppressions=$here/tsan.supp UBSAN_OPTIONS=print_stacktrace=1
STUB_NVML=$work/libnvml_stub.so
export STUB_NVML
if [ "$kind" = large-pages ]; then
  # shellcheck disable=SC2086
  $cc $flags -fPIC -shared "$here/../../../../vgpu-emulator/src/test/c/large_pages.c" -o "$work/large_pages.so"
  export LD_PRELOAD="$work/large_pages.so"
fi
# shellcheck disable=SC2086 # a list of words
exec timeout 300 ${VGPU_TEST_RUNNER-} "$work/test_hook" "$hook" "$work/libcuda_stub.so" "$@"
