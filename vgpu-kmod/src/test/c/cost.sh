#!/bin/sh
# What the core adds to the driver's calls, in nanoseconds. Usage: cost.sh WORK.
set -eu
work=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE=1 -O2 -Wall -Wextra -Wconversion -Werror -pthread "$here/cost_core.c" \
  "$here"/../../main/c/core/*.c -o "$work/cost_core"
exec "$work/cost_core"
