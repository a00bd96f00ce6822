#!/bin/sh
# Builds and runs the compatibility tests. Usage: run_compat.sh KIND WORK HOOK NVML REAL_CUDA REAL_NVML [CASE...]
# WORK: a folder for what is built. The programs are linked with libcuda.so.1 and libnvidia-ml.so.1; what they find
# there is the matter.
# KIND: plain; or asan, tsan: what stands in for NVML is in the program itself, instrumented, and NVML must be empty
# ("").
set -eu
kind=$1 work=$2 hook=$3 nvml=$4 cuda=$5 real_nvml=$6
shift 6
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
cc=${CC:-cc}
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -pthread -I$here/../../main/shm"
# shellcheck disable=SC2086
$cc $flags "$here/compat.c" "$here/fake_seat.c" -o "$work/compat" &
main=$here/../../main
case $kind in
  plain) own=$nvml ;;
  asan) own="-fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
  tsan) own="-fsanitize=thread" ;;
esac
[ "$kind" = plain ] || own="$own -DVGPU_SANITIZED -I$main/nvml $(echo "$main"/nvml/*.c) $main/c/system/shown.c $main/nvml/trampolines-$(uname -m).S -rdynamic"
# shellcheck disable=SC2086
$cc $flags "$here/compat_program.c" "$here/compat_open.c" "$here/compat_nvml.c" "$here/compat_preload.c" "$here/compat_visible.c" -o "$work/compat_program" "$hook" $own -Wl,-z,lazy -ldl
# shellcheck disable=SC2086
$cc $flags -fPIC -shared "$here/compat_other.c" -o "$work/libother.so" -ldl
# shellcheck disable=SC2086
$cc $flags -fvisibility=hidden -fPIC -shared "$here/compat_stub_nvml.c" -o "$work/libnvml_stub.so"
# shellcheck disable=SC2086
echo 'extern int cuInit(unsigned); int needs(void); int needs(void) { return cuInit(0); }' |
  $cc $flags -fPIC -shared -x c - -x none -o "$work/libneeds.so" "$hook"
# For compat_open.c: links of other names, some of which only a search path leads to; and a library linked with one.
mkdir -p "$work/links" "$work/its"
ln -sf "$cuda" "$work/links/any_driver.so"
ln -sf "$real_nvml" "$work/links/any_nvml.so"
ln -sf "$cuda" "$work/its/its_driver.so"
ln -sf "$real_nvml" "$work/its/its_nvml.so"
opens() {
  # shellcheck disable=SC2086
  $cc $flags -fPIC -shared -Wl,-soname,"$1" "$here/compat_opens.c" -o "$work/$@" -ldl
}
opens libopens_lazy.so -Wl,-z,lazy
opens libopens_now.so -Wl,-z,now -Wl,-z,relro
opens libopens_inner.so
opens libopens_rpath.so -Wl,--disable-new-dtags -Wl,-rpath,"$work/its"
opens libopens_runpath.so -Wl,--enable-new-dtags -Wl,-rpath,"$work/its"
# shellcheck disable=SC2086
$cc $flags -fPIC -shared -x c /dev/null -x none -Wl,--no-as-needed "$work/libopens_inner.so" -o "$work/libopens_needed.so"
echo 'int cuInit(unsigned flags); int cuInit(unsigned flags) { return (int)flags; }' |
  $cc $flags -fPIC -shared -x c - -o "$work/libnamed_driver.so"
echo 'extern int cuInit(unsigned); void *its(void); void *its(void) { return (void *)cuInit; }' |
  $cc $flags -fPIC -shared -x c - -x none -L"$work" -Wl,-rpath,"$work" -lnamed_driver -o "$work/libneeds_name.so"
ln -sf "$cuda" "$work/libnamed_driver.so"
mkdir -p "$work/image/compat" "$work/image/other"
cp -f "$cuda" "$work/image/compat/libcuda.so.1"
cp -f "$cuda" "$work/image/other/libcuda.so.1"
ln -sf "$cuda" "$work/libcuda.so"
ln -sf "$real_nvml" "$work/libnvidia-ml.so"
wait
COMPAT_STUB_NVML=$work/libnvml_stub.so
export COMPAT_STUB_NVML
LD_LIBRARY_PATH=$(dirname "$cuda"):$(dirname "$real_nvml"):$work:$work/links
COMPAT_WORK=$work
export LD_LIBRARY_PATH COMPAT_WORK
export ASAN_OPTIONS=detect_leaks=0:exitcode=99:verify_asan_link_order=0 TSAN_OPTIONS=exitcode=99:die_after_fork=0
# shellcheck disable=SC2086 # a list of words
exec timeout 200 ${VGPU_TEST_RUNNER-} "$work/compat" "$hook" "$nvml" "$cuda" "$real_nvml" "$work/libother.so" "$@"
