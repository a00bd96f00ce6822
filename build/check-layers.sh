#!/bin/sh
# Fails where C code of a lower layer uses a higher one. Usage: check-layers.sh SOURCES OBJECTS
#
# SOURCES holds one folder for each layer, and a file `layers` with the folders' names, the lowest layer first.
# OBJECTS holds what they were compiled to: SOURCES/turn/gate.c is OBJECTS/turn/gate.c.o. Three things are checked:
#   - each source lies in a layer and was compiled; NAME-ARCHITECTURE.S only for its architecture (VGPU_ARCH, else this
#     machine's)
#   - what an object uses is defined in its own layer, in a lower one, or outside of SOURCES
#   - a file includes nothing of a higher layer. Includes of other layers are written LAYER/NAME.h or ../LAYER/NAME.h
set -eu
sources=$(cd "$1" && pwd)
objects=$(cd "$2" && pwd)
failed=0
fail() {
  [ -z "$1" ] || printf '%s\n' "$1" >&2
  [ -z "$1" ] || failed=1
}

cd "$sources"
compiled=
arch=${VGPU_ARCH:-$(uname -m)}
for file in *.[chS] */*.[chS]; do
  [ -e "$file" ] || continue
  grep -qx "$(dirname "$file")" layers || fail "$file lies in no folder that $sources/layers names"
  case $file in
    *.h) continue ;;
    *-"$arch".S) ;;
    *-x86_64.S | *-aarch64.S) continue ;;
  esac
  if [ -e "$objects/$file.o" ]; then
    compiled="$compiled $file.o"
  else
    fail "$file was not compiled: there is no $objects/$file.o"
  fi
done

fail "$(grep -H '^ *# *include "' */*.[chS] | awk '
  NR == FNR { rank[$1] = NR; next }
  {
    split($0, part, ":")
    split(part[1], at, "/")
    included = $0
    sub(/^[^"]*"/, "", included)
    sub(/".*/, "", included)
    path = included
    sub(/^\.\.\//, "", path)
    if (path !~ /\// || path ~ /^\.\./) next
    split(path, to, "/")
    if (!(to[1] in rank)) print part[1] " includes " included ", which lies in no layer"
    else if (rank[to[1]] > rank[at[1]]) print part[1] " includes " included ", which is of a higher layer"
  }' layers -)"

cd "$objects"
# A line of nm -A: turn/gate.c.o:                 U vgpu__seat_send
# shellcheck disable=SC2086 # a list of files
fail "$(${NM:-nm} -A -g $compiled | awk '
  NR == FNR { rank[$1] = NR; next }
  {
    file = $1
    sub(/\.o:.*/, "", file)
    if ($(NF - 1) == "U") uses[file, $NF] = 1
    else if (!($NF in home)) home[$NF] = file
  }
  END {
    for (pair in uses) {
      split(pair, use, SUBSEP)
      if (!(use[2] in home)) continue
      split(use[1], at, "/")
      split(home[use[2]], to, "/")
      if (rank[to[1]] > rank[at[1]]) print use[1] " uses " use[2] " of " home[use[2]] ", which is of a higher layer"
    }
  }' "$sources/layers" - | sort)"
exit $failed
