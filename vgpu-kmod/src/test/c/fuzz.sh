#!/bin/sh
# Random requests to the core, under sanitizers. Usage: fuzz.sh WORK [REQUESTS [SEED [NEW]]]; default: ten million,
# random seed. The directory NEW gets the inputs that reach all that was reached: the next ../corpus.
set -eu
work=$1 requests=${2:-10000000} seed=${3:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
sh "$here/fuzz_build.sh" "$work" -fsanitize=address,undefined -fno-sanitize-recover=undefined
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=print_stacktrace=1
cd "$work" # for failed-input
exec ./fuzz_core fuzz "$requests" "$seed" "$here/../corpus" ${4:+"$4"}
