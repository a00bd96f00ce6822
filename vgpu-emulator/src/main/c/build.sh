#!/bin/sh
# Builds the native part into OUT/META-INF/native/linux-x86_64. Usage: build.sh OUT
# CC and CFLAGS may be set, for example CFLAGS='-O1 -g -fsanitize=address,undefined'.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$1/META-INF/native/linux-x86_64
work=$1/../emulator-native
: "${CC:=cc}"
: "${CFLAGS:=-O2}"
flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wconversion -Werror -fvisibility=hidden -fPIC $CFLAGS"
link="-shared -Wl,-Bsymbolic,-z,defs,-z,relro,-z,now,--as-needed"
common="gpu gpu_schedule log mig mig_geometry process settings state_file state_values suspend trusted"
driver="api_array api_ipc fail graph_memory imported shared_memory api_capture api_checkpoint api_context api_copy api_device api_forms api_function api_graph api_graph_any api_graph_edit api_graph_nodes api_launch api_legacy
  api_green api_link api_lookup api_mapping api_memory api_module api_pool
  api_stream api_texture api_user_object api_word capture driver graph graph_clone heap
  driver_mig host_calls ipc_event kernels machine_code memory objects operation ptx rm_driver rm_import rm_model timeline"
nvml="nvml nvml_events nvml_health nvml_mig nvml_mig_devices nvml_mig_parts nvml_monitor nvml_processes nvml_settings"

# Nothing to do if no source is newer than what was built.
if [ -f "$work/stamp" ] && [ "$(cat "$work/stamp")" = "$CC $flags" ] && [ -f "$target/nvidia-cuda-mps-control.sha256" ] &&
  [ -z "$(find "$here" -newer "$work/stamp" -print | head -n 1)" ]; then
  exit 0
fi
mkdir -p "$target" "$work"
rm -f "$work/stamp"
objects() {
  for name in "$@"; do
    printf '%s ' "$work/$name.o"
  done
}
# Two at a time.
for name in $common $driver $nvml; do
  printf '%s\n' "$name"
done | xargs -P 2 -I NAME $CC $flags -c "$here/NAME.c" -o "$work/NAME.o"
# nodelete: it may have a thread that runs host functions.
$CC $flags $link -Wl,-z,nodelete -Wl,-soname,libcuda.so.1 -o "$target/libcuda.so.1" $(objects $common $driver) -lpthread
$CC $flags $link -Wl,-soname,libnvidia-ml.so.1 -o "$target/libnvidia-ml.so.1" $(objects $common $nvml) -lpthread
$CC $flags -o "$target/nvidia-cuda-mps-control" "$here/mps_control.c"
cd "$target"
for library in libcuda.so.1 libnvidia-ml.so.1 nvidia-cuda-mps-control; do
  sha256sum "$library" | cut -d ' ' -f 1 > "$library.sha256"
done
printf '%s' "$CC $flags" > "$work/stamp"
