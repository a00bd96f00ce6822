#!/usr/bin/env bash
# Prints the public and protected signatures of a modular jar's exported packages: the types by name, and in each its
# members by their text, so that a change of order in a source is no change here.
# Usage: api-listing.sh <JDK directory> <jar>
set -euo pipefail
export LC_ALL=C
jdk=$1 jar=$2

classes=()
while IFS= read -r package; do
  while IFS= read -r entry; do
    classes+=("${entry%.class}")
  done < <("$jdk/bin/jar" --list --file "$jar" | grep "^${package//.//}/[^/]*\.class$" |
    grep -v '/package-info\.class$' | sort)
done < <("$jdk/bin/jar" --describe-module --file "$jar" | sed -n 's/^exports \([^ ]*\)$/\1/p' | sort)

[ ${#classes[@]} -gt 0 ] || exit 0
"$jdk/bin/javap" -protected -classpath "$jar" "${classes[@]//\//.}" | awk '
  /^Compiled from/ { next }
  /^}/ {
    if (shown) {
      for (i = 2; i <= n; i++) {
        line = member[i]
        for (j = i - 1; j >= 1 && member[j] > line; j--) member[j + 1] = member[j]
        member[j + 1] = line
      }
      for (i = 1; i <= n; i++) print member[i]
      print
    }
    next
  }
  # The first line of a type; javap prints those that are package-private as well.
  /^[^ ]/ { n = 0; shown = /^(public|protected) /; if (shown) print; next }
  { member[++n] = $0 }'
