#!/bin/sh
# Refuses a library that needs a newer glibc than 2.17, or another library than glibc's own.
# Usage: check_library.sh LIBRARY
set -eu
library=$1
name=$(basename "$library")
newer=$(${READELF:-readelf} --version-info "$library" | sed -n 's/.*Name: \(GLIBC_[0-9.]*\).*/\1/p' | sort -uV | awk -F'[_.]' '$2 > 2 || $3 > 17')
if [ -n "$newer" ]; then
  echo "$name would need a newer glibc than 2.17:" $newer >&2
  ${READELF:-readelf} --dyn-syms --wide "$library" | grep -E "$(echo $newer | tr ' ' '|')" >&2
  exit 1
fi
others=$(${READELF:-readelf} --dynamic "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -E '^(libc\.so\.6|libdl\.so\.2|libpthread\.so\.0|ld-linux-x86-64\.so\.2|ld-linux-aarch64\.so\.1)$' || true)
if [ -n "$others" ]; then
  echo "$name would need other libraries:" $others >&2
  exit 1
fi
