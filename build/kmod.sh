# shellcheck shell=bash
# Sourced by ./vgpu: builds the kernel module, and tests it in a virtual machine of its own.

# shellcheck source=build/debian.sh
. "$ROOT/build/debian.sh"
# shellcheck source=build/package.sh
. "$ROOT/build/package.sh"

KMOD_SOURCES=$ROOT/vgpu-kmod/src
KMOD_WORK=$ROOT/target/kmod
KMOD_DOWNLOADS=900 # seconds that each download may take
KMOD_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/vgpu/kmod

kmod_help() {
  cat <<EOF2
Usage: ./vgpu kmod build [--kernel RELEASE | --headers DIR]
       ./vgpu kmod interposer
       ./vgpu kmod test [--driver model|nvidia] [--kernel 6.1|6.12] [--module-only] [--storm SECONDS]
                        [--cycles N] [--kills N] [--within SECONDS]

build  compile vgpu_kmod.ko against a kernel's headers, into target/kmod/RELEASE
interposer
       compile libvgpu_rm.so into target/kmod, the module's ledger as a library to preload, and vgpu-turns: its turns
       for programs with that library
test   start Debian's kernel in a virtual machine, with the module and a driver that needs no GPU, and run the
       scenarios, the Java backend's among them; nothing is loaded on this machine. Packages are kept in $KMOD_CACHE.

      --kernel RELEASE  build: the kernel whose headers are used. Default: the running one, $(uname -r).
                        test: Debian's 6.1, the default, or 6.12 from its backports.
      --headers DIR     The headers themselves.
      --driver nvidia   Instead, NVIDIA's own open kernel module, unmodified, as far as it goes without a GPU. It is
                        compiled once, from Debian's package: 535 on 6.1, 550 on 6.12.
      --module-only     Without the scenarios of the Java backend.
      --storm SECONDS   How long processes allocate, free and die. Default: 5.
      --cycles N        How often the module is unloaded and loaded under load. Default: 5.
      --kills N         How often a process that has the module's device open for writing is killed. Default: 20.
                        VGPU_TEST_SEED repeats the moments that a run draws.
      --within SECONDS  The virtual machine is ended so long after its start. Default: 240.
  -h, --help            Show this help.

CC names another compiler. Exit codes: 0 done, 1 failed, 2 wrong usage, 69 this machine lacks what it needs.
EOF2
}

# kmod_need <program> <package>: succeeds where the program is there, or could be installed.
kmod_need() {
  command -v "$1" >/dev/null 2>&1 && return 0
  if may_install; then
    apt_install "$2" && return 0
  fi
  say "./vgpu kmod needs $1, which is not installed. On Debian it is in the package $2."
  return $EX_UNAVAILABLE
}

# Prints the release that a directory's headers are of; fails where they are none.
headers_release() {
  sed -n 's/^#define UTS_RELEASE "\(.*\)"$/\1/p' "$1/include/generated/utsrelease.h" 2>/dev/null | grep .
}

# Sets HEADERS to the headers of a kernel's release.
find_headers() {
  local release=$1 place
  for place in "/lib/modules/$release/build" "/usr/src/linux-headers-$release" "/usr/src/kernels/$release"; do
    if [ "$(headers_release "$place")" = "$release" ]; then
      HEADERS=$place
      return 0
    fi
  done
  return 1
}

require_headers() {
  local release=$1 package=linux-headers-$1
  find_headers "$release" && return 0
  if may_install && apt-cache show "$package" >/dev/null 2>&1; then
    apt_install "$package" && find_headers "$release" && return 0
  fi
  say "There are no headers of Linux $release on this machine."
  case $(system_family) in
    debian)
      if apt-cache show "$package" >/dev/null 2>&1; then
        say "Install them with: apt-get install $package"
      else
        say "This system's package lists have none either ($package); apt-get update makes them anew."
      fi
      ;;
    fedora) say "Install them with: dnf install kernel-devel-$release" ;;
    *) say "Install the package that has them." ;;
  esac
  say "Or name those of another kernel, with --kernel RELEASE or --headers DIR."
  return $EX_UNAVAILABLE
}

# Sets COMPILER to the arguments that make Kbuild use the compiler of the kernel itself.
find_kernel_compiler() {
  local config=$HEADERS/.config major name
  COMPILER=("CC=${CC-}")
  [ -z "${CC-}" ] || return 0
  if grep -q '^CONFIG_CC_IS_CLANG=y' "$config" 2>/dev/null; then
    COMPILER=(LLVM=1)
    kmod_need clang clang && kmod_need ld.lld lld
    return
  fi
  major=$(sed -n 's/^CONFIG_GCC_VERSION=\([0-9]*\)[0-9]\{4\}$/\1/p' "$config" 2>/dev/null)
  for name in "gcc-$major" gcc cc; do
    if [ -z "$major" ] || [ "$("$name" -dumpversion 2>/dev/null | cut -d. -f1)" = "$major" ]; then
      COMPILER=("CC=$name")
      return 0
    fi
  done
  if may_install && apt_install "gcc-$major"; then
    COMPILER=("CC=gcc-$major")
    return 0
  fi
  say "This kernel was compiled with gcc $major, and this machine has $(gcc -dumpversion 2>/dev/null | sed 's/^/gcc /' |
    grep . || echo 'no gcc')." \
    "Install gcc $major (on Debian: gcc-$major), or set CC to the compiler that shall be used all the same."
  return $EX_UNAVAILABLE
}

# compile_module <directory> <variables...>: Kbuild's part, against HEADERS. The module's types in BTF are left out: to
# make them needs pahole, and nothing uses them.
compile_module() {
  if run_logged 'compiling the module' kmod_progress env -u MAKEFLAGS \
    make -C "$HEADERS" M="$1" CONFIG_DEBUG_INFO_BTF_MODULES= "${COMPILER[@]}" "${@:2}" modules; then
    return 0
  fi
  say "the module does not compile against $HEADERS:"
  grep -E '(error|Error|not found|No such)' "$LOG" | head -n 10 | sed 's/^/  /' >&2
  say "the whole log: $LOG"
  return 1
}

kmod_progress() {
  sed -n 's/^== //p' | tail -n 1
}

# Compiles vgpu_kmod.ko into a directory of its own, so that nothing is written beside the sources.
build_module() {
  rm -rf "$1"
  mkdir -p "$1" && cp -r "$KMOD_SOURCES/main/c/." "$1" && compile_module "$@"
}

kmod_build() {
  local release given='' directory='' module
  release=$(uname -r)
  while [ $# -gt 0 ]; do
    case $1 in
      --kernel | --headers)
        [ -z "$given" ] || die 2 "--kernel and --headers exclude each other"
        [ -n "${2-}" ] || die 2 "$1 needs a value"
        given=$1
        if [ "$1" = --kernel ]; then release=$2; else directory=$2; fi
        shift
        ;;
      *) die 2 "./vgpu kmod build does not know '$1'; see ./vgpu kmod --help" ;;
    esac
    shift
  done
  kmod_need make make || exit
  if [ "$given" = --headers ]; then
    HEADERS=$(cd "$START" && cd -P "$directory" 2>/dev/null && pwd)
    release=$(headers_release "$HEADERS") ||
      die 2 "there are no kernel headers in $directory: no include/generated/utsrelease.h"
  else
    require_headers "$release" || exit
  fi
  find_kernel_compiler || exit
  lock_build
  module=$KMOD_WORK/$release
  build_module "$module" || exit 1
  say "built ${module#"$ROOT/"}/vgpu_kmod.ko for Linux $release"
}

kmod_interposer() {
  [ $# -eq 0 ] || die 2 "./vgpu kmod interposer takes no '$1'; see ./vgpu kmod --help"
  lock_build
  if ! sh "$KMOD_SOURCES/main/c/user/build.sh" "$KMOD_WORK" >>"$LOG" 2>&1; then
    say "libvgpu_rm.so and vgpu-turns could not be compiled; the end of $LOG:"
    tail -n 8 "$LOG" | sed 's/^/  /' >&2
    exit 1
  fi
  say "built ${KMOD_WORK#"$ROOT/"}/libvgpu_rm.so and vgpu-turns"
}

# ---- the virtual machine ----

# get_kernel NEW PLACE FLAVOUR [PACKAGE...]: fetches a kernel of Debian's, its headers, busybox and the packages into a
# new directory of the cache. It is renamed to PLACE at the end, so what has the name is complete.
get_kernel() {
  local new=$1 place=$2 flavour=$3 kernel headers package
  prepare_apt "$new/apt" && sed -i 's/ contrib$/& non-free/' "$new/apt/etc/sources.list" || return 1
  if [ "$KMOD_KERNEL" = 6.12 ]; then
    { # the kernel of the backports, and NVIDIA's module of the next suite, which has that kernel too
      sed "s/ $DEBIAN_SUITE / $DEBIAN_SUITE-backports /" "$new/apt/etc/sources.list"
      sed "s/ $DEBIAN_SUITE .*/ trixie contrib/" "$new/apt/etc/sources.list"
    } >"$new/apt/etc/more" && cat "$new/apt/etc/more" >>"$new/apt/etc/sources.list" || return 1
    echo "APT::Default-Release \"$DEBIAN_SUITE-backports\";" >>"$new/apt/apt.conf"
  fi
  echo '== package lists'
  timeout "$KMOD_DOWNLOADS" apt-get -q update || return 1
  kernel=$(package_behind "linux-image-$flavour") && headers=$(package_behind "linux-headers-$flavour") || return 1
  echo '== downloading'
  # shellcheck disable=SC2046 # a list of words
  (cd "$new" && timeout "$KMOD_DOWNLOADS" apt-get -q download busybox-static "$kernel" "$headers" "${@:4}" \
    $(apt-cache depends "$headers" | sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p')) || return 1
  echo '== unpacking'
  for package in "$new"/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --no-same-owner -C "$new" \
      --wildcards --exclude='*/doc/*' --exclude='*/man/*' --exclude='*/modules/*/kernel/[!fd]*' \
      --exclude='*/kernel/drivers/[!g]*' --exclude='*/kernel/drivers/gpu/drm/*/*' || return 1
  done
  rm -rf "$new"/*.deb "$new/apt"
  mv "$new"/boot/vmlinuz-* "$new/vmlinuz" && mv "$new/usr/src/$headers" "$new/usr/src/headers" &&
    sed -i "s|^include /|include $KMOD_CACHE/$place/|" "$new/usr/src/headers/Makefile" || return 1
  mv -T "$new" "$KMOD_CACHE/$place" 2>/dev/null || [ -e "$KMOD_CACHE/$place" ] # another was faster
}

# Prints the package that a package without content stands for.
package_behind() {
  apt-cache depends "$1" | sed -n 's/^ *Depends: \(linux-.*-amd64\)$/\1/p' | grep .
}

# require_kernel PLACE FLAVOUR [PACKAGE...]
require_kernel() {
  local new
  [ -e "$KMOD_CACHE/$1" ] && return 0
  if ! command -v dpkg-deb >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1 || [ ! -r "$DEBIAN_KEYS" ]; then
    say "./vgpu kmod test needs Debian's apt-get, and its archive key (debian-archive-keyring)."
    return $EX_UNAVAILABLE
  fi
  mkdir -p "$KMOD_CACHE" && new=$(mktemp -d "$KMOD_CACHE/new.XXXXXX") || return 1
  (run_logged "getting Debian's kernel" kmod_progress get_kernel "$new" "$@")
  rm -rf "$new"
  [ ! -e "$KMOD_CACHE/$1" ] || return 0
  say "Debian's kernel could not be had; the end of $LOG:"
  tail -n 5 "$LOG" | sed 's/^/  /' >&2
  return $EX_UNAVAILABLE
}

# A program of the virtual machine: the sources whose names begin with its own, and what all such programs share.
compile_tenant() {
  "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE=1 -O1 -Wall -Wextra -Werror "${2--static}" -pthread \
    -o "$KMOD_WORK/root/$1${2-}" "$KMOD_SOURCES/test/vm/$1"*.c "$KMOD_SOURCES/test/vm/tenant.c" >>"$LOG" 2>&1
}

# copy_libraries FILE...: this system's libraries that the files need
copy_libraries() {
  local library
  for library in $(ldd "$@" | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
    case $library in "$ROOT"/* | *:) continue ;; esac
    mkdir -p "$KMOD_WORK/root${library%/*}" && cp -L "$library" "$KMOD_WORK/root$library" || return 1
  done
}

# Compiles the programs that try the backend in the virtual machine. Makes a runtime for them and for the command, which
# has been built.
compile_backend() {
  require_machine || return
  IFS= read -r CLASSPATH_LINE <vgpu-cli/target/classpath.txt || {
    say "vgpu-cli is not built"
    return 1
  }
  if ! maven 'compiling the backend' -Dvgpu.quick -Dmaven.test.skip=false -DskipTests -pl vgpu-kmod -am \
    test-compile; then
    say "the backend does not compile:"
    failure_lines | sed 's/^/  /' >&2
    return 1
  fi
  if [ ! -x "$JDK/bin/jlink" ] || [ ! -d "$JDK/jmods" ]; then
    say "./vgpu kmod test needs a JDK with jlink and its modules (jmods); $JDK has none." \
      "On Debian: openjdk-17-jdk-headless"
    return $EX_UNAVAILABLE
  fi
  rm -rf "$KMOD_WORK/jre"
  "$JDK/bin/jlink" --add-modules "$RUNTIME_MODULES" --strip-debug --no-header-files --no-man-pages \
    --output "$KMOD_WORK/jre" >>"$LOG" 2>&1
}

# Copies the runtime with the libraries that it needs of this system, the command, and the programs that try it.
copy_backend() {
  local root=$1 jars
  IFS=: read -r -a jars <<<"$CLASSPATH_LINE"
  mkdir -p "$root"/{app/lib,tmp,lib64} && cp -r "$KMOD_WORK/jre" "$root/jre" && cp "${jars[@]}" "$root/app/lib" &&
    cp -r vgpu-kmod/target/test-classes "$root/app/tests" || return 1
  # shellcheck disable=SC2046 # a list of files
  copy_libraries $(find "$KMOD_WORK"/jre/{bin/java,lib/server/libjvm.so,lib/lib{java,nio,net}.so} \
    "$PWD"/vgpu-{cuda,emulator}/target/classes/META-INF/native -name java -o -name '*.so' -o -name '*.so.1')
}

# Makes what every virtual machine's first file system has.
begin_root() {
  local root=$KMOD_WORK/root
  rm -rf "$root"
  mkdir -p "$root"/{bin,modules,proc,sys,dev,tmp} && cp "$KMOD_PLACE/bin/busybox" "$root/bin/busybox" || return 1
  find "$KMOD_PLACE/lib/modules" \( -name 'configfs.ko*' -o -name 'drm.ko*' \) -exec cp {} "$root/modules" \; &&
    find "$root/modules" -name '*.xz' -exec xz -d {} + && cp "$KMOD_WORK/module/vgpu_kmod.ko" "$root/modules" &&
    cp "$KMOD_SOURCES/test/vm/functions" "$root" &&
    install -m 755 "$KMOD_SOURCES/test/vm/$1" "$root/init"
}

pack_root() {
  (cd "$KMOD_WORK/root" && find . | "$KMOD_PLACE/bin/busybox" cpio -o -H newc 2>/dev/null | gzip -1) \
    >"$KMOD_WORK/initramfs"
}

# compile_helper <files...>: a module of the virtual machine, in $KMOD_WORK/driver.
compile_helper() {
  rm -rf "$KMOD_WORK/driver"
  mkdir -p "$KMOD_WORK/driver" && cp "$KMOD_SOURCES/test/vm/Makefile" "$@" "$KMOD_WORK/driver" &&
    compile_module "$KMOD_WORK/driver" KCFLAGS=-Werror "VGPU_DRIVER=$KMOD_DRIVER"
}

make_initramfs_of_model() {
  begin_root init && cp "$KMOD_WORK"/driver/{nvidia,other}.ko "$KMOD_WORK/root/modules" &&
    compile_tenant client && compile_tenant hostile && compile_tenant cycles || return 1
  compile_tenant client -dynamic && sh "$KMOD_SOURCES/main/c/user/build.sh" "$KMOD_WORK/root" >>"$LOG" 2>&1 &&
    copy_libraries "$KMOD_WORK"/root/{client-dynamic,libvgpu_rm.so,vgpu-turns} || return 1
  if [ -z "${KMOD_MODULE_ONLY-}" ]; then
    cp "$KMOD_SOURCES/test/vm/backend" "$KMOD_WORK/root" && copy_backend "$KMOD_WORK/root" || return 1
  fi
  pack_root
}

make_initramfs_of_nvidia() {
  begin_root init-vendor && cp "$KMOD_WORK/driver/gpu.ko" "$KMOD_PLACE/nvidia.ko" "$KMOD_WORK/root/modules" &&
    compile_tenant vendor && pack_root
}

# Compiles NVIDIA's open kernel module, once for each kernel in the cache.
require_vendor() {
  local source=$KMOD_WORK/vendor
  [ ! -e "$KMOD_PLACE/nvidia.ko" ] || return 0
  rm -rf "$source"
  cp -r "$KMOD_PLACE"/usr/src/nvidia-current-open-* "$source" || return 1
  if ! run_logged "compiling NVIDIA's module" kmod_progress env -u MAKEFLAGS make -C "$source" -j "$(nproc)" modules \
    SYSSRC="$(echo "$KMOD_PLACE"/usr/src/linux-headers-*-common)" SYSOUT="$HEADERS" NV_KERNEL_MODULES=nvidia \
    "${COMPILER[@]}"; then
    say "NVIDIA's module does not compile; the log: $LOG"
    return 1
  fi
  strip --strip-debug "$source/nvidia.ko" && mv "$source/nvidia.ko" "$KMOD_PLACE/nvidia.ko"
}

prepare_machine() {
  local packages=(vm cloud-amd64)
  mkdir -p "$KMOD_WORK" || return 1
  [ "$KMOD_DRIVER" = model ] || packages=(vendor amd64 nvidia-open-kernel-dkms)
  [ "$KMOD_KERNEL" = 6.1 ] || packages[0]+=-$KMOD_KERNEL
  kmod_need qemu-system-x86_64 qemu-system-x86 && kmod_need make make && require_kernel "${packages[@]}" || return
  KMOD_PLACE=$KMOD_CACHE/${packages[0]}
  HEADERS=$KMOD_PLACE/usr/src/headers
  find_kernel_compiler || return
  build_module "$KMOD_WORK/module" KCFLAGS=-Werror || return 1
  if [ "$KMOD_DRIVER" = model ]; then
    compile_helper "$KMOD_SOURCES"/test/vm/{driver,other}.c "$KMOD_SOURCES"/test/model/* || return
    [ -n "${KMOD_MODULE_ONLY-}" ] || compile_backend || return
  else
    compile_helper "$KMOD_SOURCES/test/vm/gpu.c" && require_vendor || return
  fi
  "make_initramfs_of_$KMOD_DRIVER" && return 0
  say "the virtual machine's files could not be made; the end of $LOG:"
  tail -n 8 "$LOG" | sed 's/^/  /' >&2
  return 1
}

# The kernel writes to the first serial line, the scenarios to the second, so that no line is torn. Allocations have red
# zones, and are poisoned when they are freed. The kernel's own limits of time are long, because the machine may be
# slow.
run_machine() {
  local words='console=ttyS0 quiet loglevel=5 panic=-1 oops=panic slub_debug=FZP' checks='red zones, poisoning'
  words+=' rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60'
  if grep -q '^CONFIG_KFENCE=y' "$HEADERS/.config"; then
    words+=' kfence.sample_interval=10' checks+=', KFENCE'
  fi
  words+=" vgpu_cycles=$KMOD_CYCLES vgpu_storm=$KMOD_STORM vgpu_kills=$KMOD_KILLS vgpu_seed=${VGPU_TEST_SEED-}"
  echo "the kernel's checks of its memory: $checks"
  timeout --kill-after=10 "$KMOD_WITHIN" qemu-system-x86_64 -accel tcg,thread=multi -machine q35 -cpu max -smp 2 \
    -m 1024 -nodefaults -no-reboot -display none -device edu \
    -kernel "$KMOD_PLACE/vmlinuz" -initrd "$KMOD_WORK/initramfs" \
    -serial "file:$KMOD_WORK/kernel.log" -serial stdio \
    -append "$words"
}

# report_machine STATUS: prints each failure, and the sum. Succeeds where the machine came to its end, and all scenarios
# passed. With KMOD_MOST, a machine that was merely ended (124) is no failure.
report_machine() {
  local results=$LOG passed failed bad oops cut=0
  passed=$(grep -c '^ok   ' "$results")
  failed=$(grep -c '^FAIL ' "$results")
  grep '^FAIL ' "$results" | tr -d '\r' | sed 's/^/  /' >&2
  bad='BUG|WARNING|Oops|panic|general protection|stall|hung|KFENCE|KASAN'
  bad+='|INFO: possible|suspicious RCU|unreferenced object'
  oops=$(grep -E "$bad" "$KMOD_WORK/kernel.log")
  if [ -n "$oops" ]; then
    say "the kernel complained:"
    printf '%s\n' "$oops" | tr -d '\r' | head -n 10 | sed 's/^/  /' >&2
  fi
  if ! tr -d '\r' <"$results" | grep -qx 'END'; then
    say "the virtual machine did not come to its end within $KMOD_WITHIN s. It was at: $(kmod_progress <"$results")"
    if [ -n "${KMOD_MOST-}" ] && [ "$1" -eq 124 ]; then
      say "This machine is too slow at present: what follows was NOT tested."
      cut=1
    else
      failed=$((failed + 1))
    fi
  fi
  say "$passed passed, $failed failed (results: $results, the kernel's words: $KMOD_WORK/kernel.log)"
  [ "$failed" -eq 0 ] && [ $((passed + cut)) -ne 0 ] && [ -z "$oops" ]
}

# The gate runs this too, with KMOD_MOST: the virtual machine is ended so many seconds after its start, as the time of
# the downloads and the compiler is not its own.
check_kmod() {
  KMOD_STORM=${KMOD_STORM:-5} KMOD_CYCLES=${KMOD_CYCLES:-5} KMOD_KILLS=${KMOD_KILLS:-20}
  KMOD_WITHIN=${KMOD_MOST:-${KMOD_WITHIN:-240}}
  KMOD_DRIVER=${KMOD_DRIVER:-model} KMOD_KERNEL=${KMOD_KERNEL:-6.1}
  local LOG=$ROOT/target/vgpu-kmod.log rc=0
  if [ "$(uname -sm)" != 'Linux x86_64' ]; then
    say "./vgpu kmod test needs Linux on x86-64"
    return $EX_UNAVAILABLE
  fi
  start_log
  prepare_machine || return
  LOG=$ROOT/target/vgpu-kmod-results.log
  start_log
  run_logged 'running the scenarios in a virtual machine' kmod_progress run_machine || rc=$?
  report_machine "$rc"
}

kmod_test() {
  while [ $# -gt 0 ]; do
    case $1 in
      --driver)
        case ${2-} in model | nvidia) ;; *) die 2 "--driver is model or nvidia" ;; esac
        KMOD_DRIVER=$2
        shift
        ;;
      --kernel)
        case ${2-} in 6.1 | 6.12) ;; *) die 2 "--kernel is 6.1 or 6.12" ;; esac
        KMOD_KERNEL=$2
        shift
        ;;
      --module-only) KMOD_MODULE_ONLY=1 ;;
      --storm | --cycles | --kills | --within)
        case ${2-} in '' | *[!0-9]*) die 2 "$1 needs a number" ;; esac
        case $1 in
          --storm) KMOD_STORM=$2 ;;
          --cycles) KMOD_CYCLES=$2 ;;
          --kills) KMOD_KILLS=$2 ;;
          --within) KMOD_WITHIN=$2 ;;
        esac
        shift
        ;;
      *) die 2 "./vgpu kmod test does not know '$1'; see ./vgpu kmod --help" ;;
    esac
    shift
  done
  [ -n "${KMOD_MODULE_ONLY-}" ] || prepare_command
  cd "$ROOT" || exit 1
  lock_build
  check_kmod
}

command_kmod() {
  local part=${1-}
  case " $* " in
    *' -h '* | *' --help '* | '  ')
      kmod_help
      [ -n "$part" ]
      exit $((2 * $?))
      ;;
  esac
  cd "$ROOT" || exit 1
  LOG=$ROOT/target/vgpu-kmod.log
  start_log
  case $part in
    build | interposer | test) "kmod_$part" "${@:2}" ;;
    *) die 2 "./vgpu kmod has the parts build, interposer and test, and no '$part'" ;;
  esac
  exit
}
