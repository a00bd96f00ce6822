#!/bin/sh
# Builds the programs into OUT/../programs. Usage: build.sh OUT
# No CUDA toolkit and no driver is needed: what is linked with the driver is linked with a stub of the same name.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
programs=$(cd "$1/.." && pwd)/programs
work=$programs/build
mkdir -p "$work"

# The PTX as a C array that ends with a zero, and beside the classes for the Java program.
{
  echo 'static const unsigned char kernels_ptx[] = {'
  od -An -v -tu1 "$here/../ptx/kernels.ptx" | sed -e 's/  */ /g' -e 's/^ //' -e 's/ /, /g' -e 's/$/,/'
  echo '0};'
} >"$work/kernels_ptx.h.new"
cmp -s "$work/kernels_ptx.h.new" "$work/kernels_ptx.h" || cp "$work/kernels_ptx.h.new" "$work/kernels_ptx.h"
mkdir -p "$1/dev/vgpu/samples/cuda"
cp -p "$here/../ptx/kernels.ptx" "$1/dev/vgpu/samples/cuda/kernels.ptx" # a newer file would be a newer jar
cp "$here/../ptx/kernels.ptx" "$here/../python/spin.py" "$programs/"

FLAGS='-std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wpedantic -Wconversion -Werror -fvisibility=hidden -fPIE'

# build NAME SOURCES...: makes programs/NAME, unless it is newer than all sources.
# It appears at once: others may run it.
build() {
  name=$1
  shift
  if [ -x "$programs/$name" ] &&
    [ -z "$(find "$here" "$work/kernels_ptx.h" -type f -newer "$programs/$name" -print)" ]; then
    return 0
  fi
  # shellcheck disable=SC2086 # lists of words
  (cd "$here" && cc $FLAGS -I"$work" -pie -o "$programs/$name.new" "$@")
  mv "$programs/$name.new" "$programs/$name"
}

cc -std=c11 -O2 -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.1" "$here/driver_stub.c"

build spin spin.c driver.c driver_nolink.c program.c -ldl -lm
build sgemm sgemm.c driver.c driver_nolink.c program.c -ldl -lm
build hoard hoard.c driver.c driver_link.c program.c -Wl,--no-as-needed "$work/libcuda.so.1" -Wl,--as-needed -ldl -lm
build burst burst.c driver.c driver_link.c program.c -Wl,--no-as-needed "$work/libcuda.so.1" -Wl,--as-needed -ldl -lm

cc -std=c11 -O2 -shared -fPIC -I"$here" -Wl,-soname,libnvidia-ml.so.1 -o "$work/libnvidia-ml.so.1" "$here/nvml_stub.c"
build smi smi.c nvml_load.c program.c -ldl -lm
build smi-linked smi.c nvml_link.c program.c -Wl,--no-as-needed "$work/libnvidia-ml.so.1" -Wl,--as-needed -ldl -lm
