#!/bin/sh
# Runs C tests of what was built for aarch64, under QEMU's user mode. Usage: test.sh WORK [all]
#
# Needs aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user), and
# the modules' target/classes. QEMU shows neither the order of memory accesses nor pages of 64 KiB. With "all", also the
# tests that time something, kill, or take long. These cannot run:
#   - fork, fork-first, tenants-fork: QEMU ends where a child of a program with threads starts a thread
#   - denied: QEMU has no seccomp filters
#   - quota-churn, quota-fill: QEMU has no robust mutexes, and a killed process takes the stub driver's lock with it
#   - suspend, "nvml: processes", "nvml: utilisation": they compare start times, and QEMU makes up /proc/self/stat
#   - level 2, rm, green-alone: QEMU has no process_vm_readv
#   - measured-apart: the kernel cannot start these programs from another program
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$1
mkdir -p "$work"
libraries=/usr/aarch64-linux-gnu/lib
export VGPU_ARCH=aarch64 NM=aarch64-linux-gnu-nm OBJDUMP=aarch64-linux-gnu-objdump
CC="aarch64-linux-gnu-gcc -Wl,--dynamic-linker=$libraries/ld-linux-aarch64.so.1"
export CC="$CC -Wl,-rpath,$libraries,--disable-new-dtags" # so that the libraries that a program loads find theirs too
# A child that QEMU 7.2 forks from a program with threads hangs if another thread holds a lock of QEMU's at that moment.
# There are two: the one of -L's table of paths, which there is not for "/", and those of GLib's slices.
export G_SLICE=always-malloc
VGPU_QEMU=$(command -v qemu-aarch64)
export VGPU_QEMU VGPU_QEMU_EXEC="$work/exec.so" VGPU_TEST_RUNNER="$VGPU_QEMU -L / -E LD_PRELOAD=$work/exec.so"
export VGPU_TEST_SCALE=10
$CC -std=gnu11 -O1 -Wall -Wextra -Werror -fPIC -shared "$root/build/aarch64/exec.c" -o "$VGPU_QEMU_EXEC"
hook=$root/vgpu-cuda/target/classes/META-INF/native/linux-aarch64
emulator=$root/vgpu-emulator/target/classes/META-INF/native/linux-aarch64
failed=0

# The entry points, the gate, several leases, the ledger: tests that wait for states, whatever time those take.
hook_tests="attach memory passed-on proc-address dlopen close-descriptors gate revoked tenants-memory tenants-streams
  tenants-gates garbage garbage-grant launches-counted exits"
memory_tests="plain pools pools-later graphs physical arrays managed shared errors inputs green replay-graphs"
emulator_tests="schedule text trusted driver forms memory ipc graph nodes texture sharing mig"
if [ "${2-}" = all ]; then
  hook_tests=$(sed -n 's/^    {"\([^"]*\)", test_.*/\1/p' "$root/vgpu-cuda/src/test/c/test_hook.c" |
    grep -vxE 'fork|fork-first|tenants-fork|denied|quota-churn|quota-fill')
  memory_tests=$(sed -n 's/^    {"\([^"]*\)", role_.*/\1/p' "$root/vgpu-cuda/src/test/c/test_memory.c" |
    grep -vxE 'green-alone|measured-apart|measured-apart-old')
  emulator_tests="$emulator_tests green time random monitor fidelity pieces processes"
fi

# run NAME COMMAND...: the command's output is shown only if it fails. It has a second try, and the first is told.
run() {
  name=$1
  shift
  began=$(date +%s)
  for try in first second; do
    if "$@" > "$work/$name.log" 2>&1; then
      echo "ok   $name: $(grep -c '^ok ' "$work/$name.log") tests, $(($(date +%s) - began)) s, at the $try try"
      return
    fi
    echo "FAIL $name, the $try try"
    sed 's/^/  /' "$work/$name.log" | grep -v 'cannot be preloaded' | tail -n 60
  done
  failed=1
}

cd "$root/vgpu-cuda"
run orders sh src/test/c/check.sh orders
run exports sh src/test/c/check.sh exports "$hook/libvgpu_cuda.so"
run nvml-exports sh src/test/c/check.sh nvml-exports "$hook/libvgpu_nvml.so"
run units sh src/test/c/units.sh plain "$work/units"
# shellcheck disable=SC2086 # lists of words
run hook sh src/test/c/run.sh plain "$work/hook" "$hook/libvgpu_cuda.so" $hook_tests
# shellcheck disable=SC2086
EMULATOR=$emulator/libcuda.so.1 \
  run memory sh src/test/c/run_memory.sh plain "$work/memory" "$hook/libvgpu_cuda.so" $memory_tests
# All cases, by name, but two.
set --
while read -r name; do
  set -- "$@" "$name"
done << END
$(sed -n 's/^  ROW("\([^"]*\)".*/\1/p' src/test/c/compat.c | grep -vxE 'nvml: (processes|utilisation)')
END
run compat sh src/test/c/run_compat.sh plain "$work/compat" "$hook/libvgpu_cuda.so" "$hook/libvgpu_nvml.so" \
  "$emulator/libcuda.so.1" "$emulator/libnvidia-ml.so.1" "$@"
cd "$root/vgpu-emulator"
# shellcheck disable=SC2086
run emulator sh src/test/c/run.sh "$work/emulator" plain $emulator_tests
cd "$root"
# The programs of gpu-check's bundle, on their own start code and the oldest glibc.
# shellcheck disable=SC2016 # the other shell expands
run bundle sh -c 'build/gpu-check/programs.sh aarch64 "$1/bundle" && mkdir -p "$1/gpus" && for name in spin burst; do
    "$VGPU_QEMU" -L / -E LD_LIBRARY_PATH="$2" -E VGPU_EMULATOR_DIR="$1/gpus" "$1/bundle/$name" --seconds 1 &&
      echo "ok $name" || exit 1
  done' sh "$work" "$emulator"
exit $failed
