#!/bin/sh
# Builds the libraries and the C tests, and runs them. Usage: run.sh OUT plain|large-pages|address|thread [TEST...]
# large-pages: memory can be mapped only as on a kernel with pages of 64 KiB.
# OUT is the directory of all build results. Exits with 1 if a test fails. VGPU_TEST_RUNNER runs the programs, if they
# are for another architecture.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
main=$here/../../main/c
out=$1/$2
kind=$2
: "${CC:=cc}"
kills=200
tests="schedule text trusted driver forms green memory managed batch tensor ipc time graph nodes conditional texture random sharing suspend rm mig monitor exporters metrics fidelity pieces processes"
case $kind in
  plain) sanitize= ;;
  large-pages)
    sanitize=
    tests="memory ipc mig sharing"
    ;;
  address)
    sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
    kills=25
    ;;
  thread)
    # The sanitizer does not know fences; they order accesses that are atomic anyway. See state_values.c.
    sanitize="-fsanitize=thread -Wno-tsan"
    tests="driver forms green memory managed batch tensor ipc time graph nodes conditional texture random rm pieces"
    ;;
  *) exit 2 ;;
esac
shift 2
[ $# -eq 0 ] || tests=$*
# Handles lie in mapped memory, which the leak check does not search for pointers.
export ASAN_OPTIONS="detect_leaks=0" TSAN_OPTIONS="halt_on_error=1 suppressions=$here/tsan.supp" UBSAN_OPTIONS="print_stacktrace=1"
flags="-O1 -g $sanitize"
mkdir -p "$out"
arch=${VGPU_ARCH:-$(uname -m)}
# The libraries that two kinds share are built by the first of them, the other one waits.
case $kind in
  plain | large-pages) built=$out/../unsanitized ;;
  *) built=$out ;;
esac
mkdir -p "$built"
(
  ! command -v flock > /dev/null || flock 9
  CFLAGS="$flags" exec sh "$main/build.sh" "$built/classes" 9>&-
) 9> "$built/lock"
libraries=$(cd "$built" && pwd)/classes/META-INF/native/linux-$arch
warnings="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wconversion -Werror -I$main"

sources_of() {
  case $1 in
    schedule) echo gpu/schedule ;;
    text) echo base/settings base/ptx base/heap base/shared_memory ;;
    trusted) echo base/trusted ;;
    sharing | suspend | rm)
      echo base/log base/settings base/trusted gpu/gpu gpu/mig gpu/mig_geometry gpu/process gpu/schedule gpu/state_file gpu/state_values \
        gpu/suspend
      ;;
  esac
}
build() {
  sources=
  for source in $(sources_of "$1"); do
    sources="$sources $built/emulator-native-$arch/$source.c.o"
  done
  $CC $warnings $flags "$here/$1_test.c" $sources -o "$out/$1_test" -lpthread -ldl \
    "$libraries/libcuda.so.1" "$libraries/libnvidia-ml.so.1" -Wl,-rpath,"$libraries"
}
# Compares our declarations and the list of functions with the toolkit's header, if it is installed.
compare_with_toolkit() {
  header=${CUDA_HOME:-/usr/local/cuda}/include
  if [ ! -f "$header/cuda.h" ]; then
    echo "no CUDA toolkit: $header/cuda.h is not there, so nothing was compared with it"
    return 0
  fi
  $CC $warnings "$here/abi_probe.c" -o "$out/abi_ours"
  $CC -std=c11 -DTHEIRS -isystem "$header" "$here/abi_probe.c" -o "$out/abi_theirs"
  ${VGPU_TEST_RUNNER-} "$out/abi_ours" > "$out/abi_ours.txt"
  ${VGPU_TEST_RUNNER-} "$out/abi_theirs" > "$out/abi_theirs.txt"
  diff "$out/abi_ours.txt" "$out/abi_theirs.txt" || return 1
  ${NM:-nm} -D --defined-only "$libraries/libcuda.so.1" | sed 's/.* //' | sort > "$out/exported.txt"
  grep -oE '^CUresult CUDAAPI cu[A-Za-z0-9_]+' "$header/cuda.h" | sed 's/.* //' | sort -u |
    comm -23 - "$out/exported.txt" > "$out/missing.txt"
  if [ -s "$out/missing.txt" ]; then
    echo "in the toolkit's header, and not exported:" && cat "$out/missing.txt"
    return 1
  fi
}
# For old systems, no symbol may need a glibc newer than 2.17. Only the driver's and NVML's names may be exported.
check_symbols() {
  for library in libcuda.so.1 libnvidia-ml.so.1; do
    newest=$(${OBJDUMP:-objdump} -T "$libraries/$library" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
    case $(printf '%s\n%s\n' "$newest" GLIBC_2.17 | sort -V | tail -n 1) in
      GLIBC_2.17) ;;
      *) echo "$library needs $newest" && return 1 ;;
    esac
    if ${NM:-nm} -D --defined-only "$libraries/$library" | sed 's/.* //' | grep -vE '^(cu[A-Z]|nvml[A-Z])'; then
      echo "$library exports these" && return 1
    fi
  done
}
failed=0
if [ "$kind" = plain ]; then
  compare_with_toolkit && check_symbols || failed=1
fi
for test in $tests; do
  build "$test" &
done
wait
runner=${VGPU_TEST_RUNNER-}
if [ "$kind" = large-pages ]; then
  $CC -std=gnu11 -Wall -Wextra -Werror $flags -fPIC -shared "$here/large_pages.c" -o "$out/large_pages.so"
  runner="env LD_PRELOAD=$out/large_pages.so"
fi
for test in $tests; do
  # A short path, because the tests create directories and sockets below it.
  directory=$(mktemp -d /tmp/vgpu-emu-XXXXXX)
  if ! VGPU_EMULATOR_DIR=$directory VGPU_TEST_KILLS=$kills \
    VGPU_EMULATOR="devices=2,memory=1GiB,model=Test GPU" timeout 150 $runner "$out/${test}_test"; then
    echo "failed: ${test}_test ($kind)"
    failed=1
  fi
  rm -rf "$directory"
done
exit $failed
