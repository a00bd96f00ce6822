#!/usr/bin/env bash
# Makes and destroys MIG instances over the emulator, as root, with the seat killed at random moments and others at
# work on the same GPU; fails if one is left or one of theirs is touched. Prints one line, with the machine's load and
# the commit.
# Usage: build/mig-cycles.sh [CYCLES]        100,000 take 20 minutes on two idle cores
set -eu

cycles=${1:-100000}
cd "$(dirname "$0")/.."
begin=$(date +%s)
mvn -o -B -nsu -pl vgpu-nvml -am test -Dtest='MigEnforcementTest#whereverTheSeatIsKilled*' \
  -Dsurefire.failIfNoSpecifiedTests=false -Dvgpu.mig.cycles="$cycles" -Dvgpu.forkTimeout=0 \
  >target/mig-cycles.log 2>&1 || {
  tail -n 40 target/mig-cycles.log >&2
  exit 1
}
printf '%s seconds=%s commit=%s load=%s\n' "$(grep -ao 'MIG cycles=.*' target/mig-cycles.log | tail -n 1)" \
  "$(($(date +%s) - begin))" "$(git describe --always --dirty)" "$(cut -d ' ' -f 1 /proc/loadavg)"
