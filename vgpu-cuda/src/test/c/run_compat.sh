#!/bin/sh
# Builds and runs the compatibility tests. Usage: run_compat.sh WORK HOOK NVML REAL_CUDA REAL_NVML [CASE...]
# WORK: a folder for what is built. The programs are linked with the real libraries' names; the hook takes these.
set -eu
work=$1 hook=$2 nvml=$3 cuda=$4 real_nvml=$5
shift 5
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
cc=${CC:-cc}
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -pthread -I$here/../../main/shm"
# shellcheck disable=SC2086
$cc $flags "$here/compat.c" "$here/fake_seat.c" -o "$work/compat" &
# shellcheck disable=SC2086
$cc $flags "$here/compat_program.c" "$here/compat_nvml.c" -o "$work/compat_program" "$cuda" "$real_nvml" -ldl
# shellcheck disable=SC2086
$cc $flags -fPIC -shared "$here/compat_other.c" -o "$work/libother.so" -ldl
wait
LD_LIBRARY_PATH=$(dirname "$cuda"):$(dirname "$real_nvml")
export LD_LIBRARY_PATH
exec timeout 200 "$work/compat" "$hook" "$nvml" "$cuda" "$real_nvml" "$work/libother.so" "$@"
