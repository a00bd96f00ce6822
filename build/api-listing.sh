#!/usr/bin/env bash
# Prints the public and protected signatures of a modular jar's exported packages, sorted, one class after the other.
# Usage: api-listing.sh <JDK directory> <jar>
set -euo pipefail
jdk=$1 jar=$2

packages=$("$jdk/bin/jar" --describe-module --file "$jar" 2>/dev/null | sed -n 's/^exports \([^ ]*\)$/\1/p')
for package in $(printf '%s\n' "$packages" | LC_ALL=C sort); do
  path=$(printf '%s' "$package" | tr . /)
  "$jdk/bin/jar" --list --file "$jar" | grep "^$path/[^/]*\.class$" | grep -v -e '/package-info\.class$' |
    LC_ALL=C sort |
    while IFS= read -r entry; do
      name=${entry%.class}
      "$jdk/bin/javap" -protected -classpath "$jar" "${name//\//.}" | LC_ALL=C awk '
        /^Compiled from/ { next }
        /^\}/ {
          for (i = 2; i <= n; i++) { line = member[i]; for (j = i - 1; j >= 1 && member[j] > line; j--) member[j + 1] = member[j]; member[j + 1] = line }
          for (i = 1; i <= n; i++) print member[i]
          print; next
        }
        /^[^ ]/ { if ($0 !~ /^(public|protected) /) exit; print; next }
        { member[++n] = $0 }'
    done
done
