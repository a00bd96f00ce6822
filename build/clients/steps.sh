#!/usr/bin/env bash
# Runs clients over the emulator, bare and under vgpu run. Called by build/clients.sh, as a namespace's first process.
# Usage: steps.sh WORK TREE CLIENT...   with CLASSPATH_LINE, JDK and RUNS set
set -u
WORK=$1
TREE=$2
shift 2
PROGRAMS=$WORK/programs
PTX=$PROGRAMS/kernels.ptx
OUT=$WORK/out
DRIVER=$WORK/driver
# Both runs of a step see the same GPU.
export VGPU_EMULATOR_DIR=$WORK/gpus
export VGPU_EMULATOR=memory=2GiB,wave=1ms
trap 'exit 143' TERM
trap 'exit 130' INT

mount_all() {
  mount -t tmpfs none "$TREE/tmp" && mount -t proc proc "$TREE/proc" && mount --rbind /dev "$TREE/dev" &&
    mount --rbind /sys "$TREE/sys" && mkdir -p "$TREE$WORK" && mount --bind "$WORK" "$TREE$WORK"
}

vgpu() {
  # The emulated contexts take 64 MiB, which vgpu knows of its own emulator only.
  VGPU_CONTEXT_MEMORY=$((64 << 20)) VGPU_CUDA_DRIVER=$DRIVER/libcuda.so.1 VGPU_NVML=$DRIVER/libnvidia-ml.so.1 \
    "$JDK/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$CLASSPATH_LINE" dev.vgpu.cli.VgpuCommand "$@"
}

# one_run NAME MODE PREFIX...: runs COMMAND in the tree, behind the prefix.
one_run() {
  local to=$OUT/$1.$2
  echo "== $1, $2"
  (
    export HOME="/tmp/home.$1.$2" LC_ALL=C.UTF-8 TERM=screen PYTHONDONTWRITEBYTECODE=1
    export PATH=/usr/bin:/usr/sbin:/bin:/sbin
    mkdir -p "$TREE$HOME"
    "${@:3}" chroot "$TREE" env LD_LIBRARY_PATH="$DRIVER" "$PROGRAMS/timed" "$to.time" "${COMMAND[@]}"
  ) >"$to.out" 2>"$to.err" </dev/null
  cat "$to.out" "$to.err"
}

# step NAME VERSION QUOTA PERCENT COMMAND...: both runs of one thing that a client does, RUNS times. The last outputs
# and accounts stay, and all times. PERCENT may be empty.
step() {
  local name=$1 version=$2 quota=$3 percent=$4 i
  shift 4
  COMMAND=("$@")
  for ((i = 1; i <= RUNS; i++)); do
    one_run "$name" bare env
    export VGPU_RUN_DIR=$WORK/run/$name.$i
    one_run "$name" vgpu vgpu run --memory "$quota" ${percent:+--compute "$percent"} --
    vgpu usage --since 1h --json >"$OUT/$name.usage"
    unset VGPU_RUN_DIR
  done
  printf '%s|%s|%s|%s\n' "$name" "$version" "$quota" "$percent" >>"$OUT/steps"
}

# Prints the version of an unpacked package.
version_of() {
  local file
  for file in "$TREE/../unpacked/$1"_*; do
    file=${file##*/"$1"_}
    file=${file%_*}
    printf '%s\n' "${file/\%3a/:}"
  done
}

steps_of() {
  case $1 in
    pycuda)
      step pycuda "$(version_of python3-pycuda)" 256MiB 50 python3 "$PROGRAMS/pycuda_loop.py" "$PTX"
      if [ ! -d "$TREE/src/pycuda/test" ]; then
        echo "the sources of PyCUDA ($PYCUDA_SOURCE) cannot be had" >"$OUT/pycuda-tests.skipped"
      else
        step pycuda-tests "$(version_of python3-pycuda)" 1GiB '' \
          python3 "$PROGRAMS/outcomes.py" pytest /src/pycuda/test/test_driver.py
      fi
      ;;
    numba)
      # This Numba takes the newest form of a name for the one it knows, and does not run on drivers of CUDA 13.
      local DRIVER=$WORK/driver-12
      step numba "$(version_of python3-numba)" 256MiB 50 python3 "$PROGRAMS/numba_loop.py" "$PTX"
      # Those of the driver layer that need no compiler, each file by itself: one that fails spoils the rest of its own.
      step numba-tests "$(version_of python3-numba)" 1GiB '' bash -c 'failed=0
        for name in cuda_driver cuda_memory cuda_ndarray pinned streams; do
          python3 -m numba.runtests -v numba.cuda.tests.cudadrv.test_$name 2>&1 || failed=1
        done
        exit $failed'
      ;;
    jcuda)
      step jcuda "$(cat "$TREE/src/jcuda/version")" 256MiB 50 \
        /usr/lib/jvm/java-17-openjdk-amd64/bin/java -cp "$PROGRAMS/classes:/src/jcuda/*" JCudaLoop "$PTX"
      ;;
    tinygrad)
      step tinygrad "git $(cut -c 1-9 "$TREE/src/tinygrad/version")" 256MiB 50 \
        env PYTHONPATH=/src/tinygrad python3 "$PROGRAMS/tinygrad_loop.py"
      ;;
    ffmpeg)
      step ffmpeg "$(version_of ffmpeg)" 256MiB 50 \
        ffmpeg -v error -f lavfi -i testsrc=duration=4:size=1280x720:rate=25 \
        -vf format=nv12,hwupload_cuda,hwdownload,format=nv12 -f framemd5 -
      ! chroot "$TREE" ffmpeg -v quiet -filters | grep -q scale_cuda ||
        step ffmpeg-scale "$(version_of ffmpeg)" 256MiB 50 \
        ffmpeg -v error -f lavfi -i testsrc=duration=4:size=1280x720:rate=25 \
        -vf format=nv12,hwupload_cuda,scale_cuda=640:360,hwdownload,format=nv12 -f framemd5 -
      ;;
    gstreamer)
      step gstreamer "$(version_of gstreamer1.0-plugins-bad)" 256MiB '' gst-inspect-1.0 nvcodec
      ;;
    blender)
      step blender "$(version_of blender)" 256MiB '' \
        blender -b --factory-startup --python-exit-code 3 --python "$PROGRAMS/blender_devices.py"
      ;;
    hashcat) step hashcat "$(version_of hashcat)" 256MiB '' hashcat -I ;;
    nvtop) step nvtop "$(version_of nvtop)" 256MiB '' "$PROGRAMS/screen" 'Emulated GPU' nvtop ;;
    pynvml) step pynvml "$(version_of python3-pynvml)" 256MiB '' \
      "$PROGRAMS/screen" 'no more' "python3 $PROGRAMS/pynvml_screen.py; sleep 5" ;;
  esac
}

mount_all || exit 1
: >"$OUT/steps"
for client in "$@"; do
  [ -e "$OUT/$client.skipped" ] || steps_of "$client"
done
