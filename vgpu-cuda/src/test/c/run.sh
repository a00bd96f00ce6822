#!/bin/sh
# Builds and runs the C tests. Usage: run.sh KIND WORK HOOK [TEST...], KIND: plain, large-pages, asan, tsan.
# large-pages: the same as plain, but memory can be mapped only as on a kernel with pages of 64 KiB.
# Work files go to the folder WORK. VGPU_TEST_RUNNER runs the program, if it is for another architecture.
# VGPU_TEST_LANES: into how many parts, which run beside each other, the tests are divided if none is named. Most wait.
set -eu
kind=$1 work=$2 hook=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=vgpu-cuda/src/test/c/kinds.sh
. "$here/kinds.sh"
mkdir -p "$work"
tests=
for source in test_hook test_gate test_express test_storm test_tenants test_work roles roles_churn roles_tenants \
  roles_work roles_charged roles_graphs roles_process roles_denied roles_slips delays fake_seat; do
  tests="$tests $here/$source.c"
done
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
  compile_hook
  # shellcheck disable=SC2086
  $cc $flags $sanitize -include "$main/c/system/compat.h" $tests $hook_objects -o "$work/test_hook" -rdynamic -ldl
  hook=-
fi
STUB_NVML=$work/libnvml_stub.so
export STUB_NVML
if [ "$kind" = large-pages ]; then
  # shellcheck disable=SC2086
  $cc $flags -fPIC -shared "$here/../../../../vgpu-emulator/src/test/c/large_pages.c" -o "$work/large_pages.so"
  export LD_PRELOAD="$work/large_pages.so"
fi
if [ $# -eq 0 ] && [ "${VGPU_TEST_LANES:-1}" -gt 1 ]; then
  lane=0 lanes=
  while [ $lane -lt "$VGPU_TEST_LANES" ]; do
    names=$(sed -n 's/^    {"\([^"]*\)", test_.*/\1/p' "$here/test_hook.c" |
      awk -v lane=$lane -v lanes="$VGPU_TEST_LANES" 'NR % lanes == lane')
    # shellcheck disable=SC2086 # lists of words
    timeout 300 ${VGPU_TEST_RUNNER-} "$work/test_hook" "$hook" "$work/libcuda_stub.so" $names > "$work/lane-$lane" 2>&1 &
    lanes="$lanes $!"
    lane=$((lane + 1))
  done
  failed=0
  for lane in $lanes; do wait "$lane" || failed=1; done
  cat "$work"/lane-*
  exit $failed
fi
# shellcheck disable=SC2086 # a list of words
exec timeout 300 ${VGPU_TEST_RUNNER-} "$work/test_hook" "$hook" "$work/libcuda_stub.so" "$@"
