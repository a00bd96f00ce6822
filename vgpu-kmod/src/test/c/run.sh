#!/bin/sh
# Builds and runs the C tests of the core. Usage: run.sh KIND WORK [TEST...], KIND: plain, asan, tsan.
# tsan runs only the thread test. Work files go to the directory WORK.
set -eu
kind=$1 work=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
cc=${CC:-cc}
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -Wconversion -Werror -pthread -fno-omit-frame-pointer"
case $kind in
  plain) sanitize= ;;
  asan) sanitize="-fsanitize=address,undefined -fno-sanitize-recover=undefined" ;;
  tsan) sanitize="-fsanitize=thread" ;;
esac
sources="$here/bed.c $here/../model/*.c $here/../../main/c/core/*.c"
export ASAN_OPTIONS=exitcode=99 TSAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=print_stacktrace=1
if [ "$kind" != tsan ]; then
  # shellcheck disable=SC2086
  $cc $flags $sanitize "$here/test_core.c" "$here/test_charge.c" "$here/test_hostile.c" "$here/test_overlap.c" \
    "$here/test_shares.c" "$here/test_turns.c" \
    "$here/test_turns_random.c" $sources -o "$work/test_core_$kind"
  timeout 120 "$work/test_core_$kind" "$@"
  # shellcheck disable=SC2086
  $cc $flags $sanitize "$here/fuzz_core.c" "$here/fuzz_inputs.c" $sources -o "$work/fuzz_$kind"
  timeout 120 "$work/fuzz_$kind" replay "$here/../corpus"
fi
# shellcheck disable=SC2086
$cc $flags $sanitize "$here/test_threads.c" $sources -o "$work/test_threads_$kind"
timeout 120 "$work/test_threads_$kind"
[ "$kind" = plain ] || exit 0
# The same core in front of a process's own driver calls.
sh "$here/../../main/c/user/build.sh" "$work"
# shellcheck disable=SC2086
$cc $flags -fPIC -shared "$here/user_driver.c" "$here"/../model/*.c -o "$work/user_driver.so"
# shellcheck disable=SC2086
$cc $flags "$here/user_client.c" -o "$work/user_client"
rm -rf "$work/events" && mkdir "$work/events"
LD_PRELOAD="$work/libvgpu_rm.so $work/user_driver.so" VGPU_RM_LIMIT=67108864 VGPU_RM_REPORT="$work/report" \
  VGPU_RM_EVENTS="$work/events" timeout 60 "$work/user_client"
for test in programs slices; do
  # shellcheck disable=SC2086
  $cc $flags "$here/test_$test.c" "$here/../../main/c/user/programs.c" "$here"/../../main/c/core/*.c \
    -o "$work/test_$test"
  rm -rf "${work:?}/$test" && mkdir "$work/$test"
  timeout 60 "$work/test_$test" "$work/$test"
done
