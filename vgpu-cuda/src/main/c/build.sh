#!/bin/sh
# Builds the native part into OUT/META-INF/native/linux-x86_64. Usage: build.sh OUT
set -eu
mkdir -p "$1/META-INF/native/linux-x86_64"
