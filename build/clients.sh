# shellcheck shell=bash
# Sourced by ./vgpu: runs programs that others wrote over the emulator, bare and under vgpu run, and compares.
# What they are and what is done with them: build/clients/steps.sh, which runs in a namespace of its own.

# shellcheck source=build/debian.sh
. "$ROOT/build/debian.sh"

CLIENTS='pycuda numba jcuda tinygrad ffmpeg gstreamer blender hashcat nvtop pynvml'
# The last whose library for the driver interface is not linked with NVIDIA's runtime.
JCUDA=10.2.0
MAVEN_CENTRAL=https://repo.maven.apache.org/maven2
PYCUDA_SOURCE='https://github.com/inducer/pycuda v2022.2.2'
TINYGRAD_SOURCE='https://github.com/tinygrad/tinygrad a9069c177a9da9cca18593edf55acd2e6073cca6'

# What packages depend on and these clients do not need here, or shall not have (NVIDIA's libraries): as if installed.
LEFT_OUT='libcuda1 libnvidia-ml1 nvidia-cuda-toolkit libcurand10 pocl-opencl-icd adduser ca-certificates-java dbus
  debconf fonts-dejavu perl systemd udev'

clients_help() {
  cat <<EOF2
Usage: ./vgpu clients [--root DIR] [--only NAME,...] [--runs N] [--json]
Install programs that others wrote into a directory of their own, run each over the emulator, bare and under
'vgpu run', and compare: exit status, output, the memory and the share held, time.

      --root DIR        Keep what is installed in DIR (some 2.5 GiB for all), and use what is there already.
                        Default: a directory in target, removed at the end.
      --only NAME,...   These alone, of: ${CLIENTS// /, }.
      --runs N          Run each N times, 1 to 99; the medians of the times count. Default: 1.
      --json            Print one JSON object instead of the table.
  -h, --help            Show this help.

The packages are Debian's ($DEBIAN_SUITE; contrib, no recommends), fetched with apt-get, and unpacked, not installed:
nothing on this machine changes. JCuda comes from Maven Central, sources of tinygrad and of PyCUDA's tests from GitHub.
What cannot be had is skipped, and said so. No library of NVIDIA's is fetched. It needs Linux on x86-64, Debian's
apt-get and archive key, and root or user namespaces. What was run, and all output: target/vgpu-clients.log.

A share held is within 5 points below what was asked, for a busy machine's sake, and 1 above. A run under vgpu is slower
if it took 3 s more than the bare run and what its share adds to its time on the GPU.
Exit codes: 0 all held, 1 something did not, 2 wrong usage, 69 this machine lacks what it needs, or nothing could be
had, 130 ended by Ctrl-C.
EOF2
}

# Sets ONLY, KEPT_ROOT, RUNS, AS_JSON from the command's arguments.
clients_options() {
  local name
  ONLY=$CLIENTS KEPT_ROOT='' RUNS=1 AS_JSON=''
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help)
        clients_help
        exit 0
        ;;
      --json) AS_JSON=1 ;;
      --root=* | --only=* | --runs=*)
        name=${1%%=*}
        set -- "$name" "$@"
        set -- "$1" "${2#*=}" "${@:3}"
        continue
        ;;
      --root | --only | --runs)
        [ -n "${2-}" ] || die 2 "$1 needs a value"
        case $1 in
          --root) KEPT_ROOT=$2 ;;
          --only) ONLY=${2//,/ } ;;
          --runs) RUNS=$2 ;;
        esac
        shift
        ;;
      *) die 2 "./vgpu clients does not know '$1'; see ./vgpu clients --help" ;;
    esac
    shift
  done
  case $RUNS in
    [1-9] | [1-9][0-9]) ;;
    *) die 2 "--runs needs a number from 1 to 99, and not '$RUNS'" ;;
  esac
  for name in $ONLY; do
    case " $CLIENTS " in
      *" $name "*) ;;
      *) die 2 "there is no client '$name'; there are ${CLIENTS// /, }" ;;
    esac
  done
}

# Prints the packages of a client.
packages_of() {
  printf '%s' 'base-files bash coreutils libc-bin ncurses-base util-linux '
  case $1 in
    pycuda) echo python3-pycuda python3-pytest ;;
    numba) echo python3-numba ;;
    jcuda) echo openjdk-17-jre-headless ;;
    tinygrad) echo python3 ;;
    ffmpeg) echo ffmpeg ;;
    gstreamer) echo gstreamer1.0-plugins-bad gstreamer1.0-plugins-base gstreamer1.0-tools ;;
    blender) echo blender ;;
    hashcat) echo hashcat ocl-icd-libopencl1 ;;
    nvtop) echo nvtop tmux ;;
    pynvml) echo python3-pynvml ;;
  esac
}

# Sets NAMESPACE to what gives a command mounts and processes of its own, or ends.
find_namespace() {
  local ways=('' '--user --map-root-user') way
  for way in "${ways[@]}"; do
    NAMESPACE="unshare $way --mount --propagation private --pid --fork --kill-child --mount-proc"
    # shellcheck disable=SC2086 # a list of words
    if $NAMESPACE true 2>/dev/null; then return 0; fi
  done
  die $EX_UNAVAILABLE "the clients run in namespaces of their own, and this user may not make any" \
    "($NAMESPACE)"
}

require_clients() {
  local program
  [ "$(uname -sm)" = 'Linux x86_64' ] || die $EX_UNAVAILABLE "the emulator needs Linux on x86-64"
  for program in apt-get dpkg-deb unshare chroot tar cc; do
    command -v $program >/dev/null 2>&1 || die $EX_UNAVAILABLE "./vgpu clients needs $program, which is not installed"
  done
  [ -r $DEBIAN_KEYS ] ||
    die $EX_UNAVAILABLE "./vgpu clients needs Debian's archive key (debian-archive-keyring): $DEBIAN_KEYS is not there"
  find_namespace
}

# Unpacks a package into the tree, once.
unpack() {
  local deb=$1 done=$CLIENTS_ROOT/unpacked/${1##*/}
  [ ! -e "$done" ] || return 0
  dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$CLIENTS_ROOT/tree" && : >"$done"
}

# Fetches and unpacks the packages of a client.
get_packages() {
  local steps name
  # shellcheck disable=SC2046 # a list of words
  set -- $(packages_of "$1")
  steps=$(apt-get -q -s install "$@") || return 1
  apt-get -q -y --download-only install "$@" || return 1
  # Inst NAME (VERSION ... [ARCHITECTURE])
  for name in $(printf '%s\n' "$steps" | sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*\[\([^]]*\)\]).*/\1_\2_\3.deb/p'); do
    unpack "$CLIENTS_ROOT/apt/archives/${name//:/%3a}" || return 1
  done
}

# Puts a commit or tag of a repository into the tree: get_source NAME URL REVISION
get_source() {
  local to=$CLIENTS_ROOT/tree/src/$1
  rm -rf "$to"
  git init -q "$to" && git -C "$to" fetch -q --depth 1 "$2" "$3" && git -C "$to" checkout -q FETCH_HEAD &&
    echo "$3" >"$to/version"
}

get_file() {
  if command -v curl >/dev/null 2>&1; then
    curl -sSfL -o "$2" "$1"
  else
    wget -q -O "$2" "$1"
  fi
}

get_jcuda() {
  local to=$CLIENTS_ROOT/tree/src/jcuda name
  mkdir -p "$to" || return 1
  for name in jcuda/$JCUDA/jcuda-$JCUDA.jar jcuda-natives/$JCUDA/jcuda-natives-$JCUDA-linux-x86_64.jar; do
    get_file "$MAVEN_CENTRAL/org/jcuda/$name" "$to/${name##*/}" || return 1
  done
  echo $JCUDA >"$to/version"
}

# PyCUDA's library wants the names of NVIDIA's cuRAND to be there. These five answer that it is not usable.
make_curand() {
  local to=$CLIENTS_ROOT/tree/usr/lib/x86_64-linux-gnu name
  for name in DirectionVectors32 DirectionVectors64 ScrambleConstants32 ScrambleConstants64 Version; do
    echo "int curandGet$name(void) { return 101; }"
  done >"$CLIENTS_ROOT/curand.c"
  echo 'libcurand.so.10 { global: curand*; local: *; };' >"$CLIENTS_ROOT/curand.map"
  cc -shared -fPIC -Wl,-soname,libcurand.so.10 -Wl,--version-script="$CLIENTS_ROOT/curand.map" \
    -o "$to/libcurand.so.10" "$CLIENTS_ROOT/curand.c"
}

# Installs one client; what it says when it fails is why it is skipped.
get_client() {
  local nvcc
  [ ! -e "$CLIENTS_ROOT/have/$1" ] || return 0
  get_packages "$1" || return 1
  case $1 in
    pycuda)
      make_curand || return 1
      # shellcheck disable=SC2086 # a URL and a revision
      get_source pycuda $PYCUDA_SOURCE || rm -rf "$CLIENTS_ROOT/tree/src/pycuda"
      ;;
    # shellcheck disable=SC2086
    tinygrad) get_source tinygrad $TINYGRAD_SOURCE || return 1 ;;
    jcuda) get_jcuda || return 1 ;;
    # Blender looks for GPUs only where a compiler is, which it does not run for that.
    blender)
      nvcc=$CLIENTS_ROOT/tree/usr/local/cuda/bin/nvcc
      mkdir -p "${nvcc%/*}" && printf '#!/bin/sh\nexit 1\n' >"$nvcc" && chmod 755 "$nvcc" || return 1
      ;;
  esac
  : >"$CLIENTS_ROOT/have/$1"
}

# Installs what is not there yet; writes why a client is skipped to WORK/out/NAME.skipped.
get_clients() {
  local name tree=$CLIENTS_ROOT/tree missing=''
  mkdir -p "$CLIENTS_ROOT"/{unpacked,have} "$tree"/{usr/bin,usr/lib,usr/lib64,usr/sbin,dev,proc,sys,tmp,src} || return 1
  for name in bin lib lib64 sbin; do [ -L "$tree/$name" ] || ln -s "usr/$name" "$tree/$name" || return 1; done
  for name in $ONLY; do [ -e "$CLIENTS_ROOT/have/$name" ] || missing="$missing $name"; done
  [ -n "$missing" ] || return 0
  # shellcheck disable=SC2086 # a list of words
  prepare_apt "$CLIENTS_ROOT/apt" $LEFT_OUT || return 1
  echo "== package lists"
  apt-get -q update || echo "apt-get update failed"
  for name in $missing; do
    echo "== $name"
    if ! get_client "$name" >"$WORK/out/get.txt" 2>&1; then
      grep -v '^$' "$WORK/out/get.txt" | tail -n 1 >"$WORK/out/$name.skipped"
    fi
    cat "$WORK/out/get.txt"
  done
  # Debian chooses among these by links that the packages' scripts make.
  printf '/usr/lib/x86_64-linux-gnu/%s\n' blas lapack openblas-pthread pulseaudio >"$tree/etc/ld.so.conf.d/vgpu.conf"
  echo 'root:x:0:0:root:/tmp:/bin/sh' >"$tree/etc/passwd"
  ldconfig -r "$tree" 2>/dev/null
}

clients_progress() {
  sed -n 's/^== //p' | tail -n 1
}

compile_jcuda() {
  local jar=$CLIENTS_ROOT/tree/src/jcuda/jcuda-$JCUDA.jar programs=$WORK/programs
  [ ! -e "$jar" ] || "$JDK/bin/javac" --release 17 -cp "$jar" -d "$programs/classes" "$programs/JCudaLoop.java"
}

# Puts what runs into WORK: the emulator, the clients' programs, and a place for results.
prepare_work() {
  local natives=$ROOT/vgpu-emulator/target/classes/META-INF/native/linux-x86_64
  mkdir -p "$WORK/driver" "$WORK/driver-12" "$WORK/out" "$WORK/gpus" &&
    cp "$natives/libcuda.so.1" "$natives/libnvidia-ml.so.1" "$WORK/driver" &&
    cp "$natives/libnvidia-ml.so.1" "$WORK/driver-12" &&
    ln -s libcuda.so.1 "$WORK/driver/libcuda.so" && ln -s libcuda.so.1 "$WORK/driver-12/libcuda.so" &&
    LC_ALL=C sed 's/\(cuCtxGetDevice\|cuCtxSynchronize\)_v2/\1_13/g' "$natives/libcuda.so.1" \
      >"$WORK/driver-12/libcuda.so.1" &&
    cp -r "$ROOT/build/clients" "$WORK/programs" &&
    cp "$ROOT/samples/cuda-programs/src/main/ptx/kernels.ptx" "$WORK/programs"
}

remove_work() {
  # Mounts in the tree are in a namespace that has ended.
  rm -rf "$WORK"
  [ -n "$KEPT_ROOT" ] || rm -rf "$CLIENTS_ROOT"
}

command_clients() {
  PATH=$PATH:/usr/sbin:/sbin
  clients_options "$@"
  require_clients
  prepare_command
  export JDK CLASSPATH_LINE PYCUDA_SOURCE RUNS
  if [ -n "$KEPT_ROOT" ]; then
    mkdir -p "$KEPT_ROOT" && CLIENTS_ROOT=$(cd -P "$KEPT_ROOT" && pwd) || die 1 "cannot make the directory $KEPT_ROOT"
  else
    CLIENTS_ROOT=$(mktemp -d "$ROOT/target/clients.XXXXXX") || exit 1
  fi
  WORK=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-clients.XXXXXX") || exit 1
  trap remove_work EXIT
  cd "$ROOT" || exit 1
  LOG=$ROOT/target/vgpu-clients.log
  start_log
  prepare_work || die 1 "cannot prepare $WORK"
  run_logged 'getting the clients' clients_progress get_clients ||
    die 1 "the clients cannot be installed: $(tail -n 1 "$LOG")"
  compile_jcuda || die 1 "JCudaLoop.java does not compile"
  # shellcheck disable=SC2086 # a list of words
  run_logged 'running the clients' clients_progress \
    $NAMESPACE bash "$WORK/programs/steps.sh" "$WORK" "$CLIENTS_ROOT/tree" $ONLY ||
    die 1 "the clients could not be run; the end of $LOG:" "$(tail -n 5 "$LOG")"
  COMMIT=$(git describe --always --dirty 2>/dev/null) AS_JSON=$AS_JSON bash "$WORK/programs/report.sh" "$WORK/out"
  exit $?
}
