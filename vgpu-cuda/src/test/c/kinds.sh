# shellcheck shell=sh
# Sourced by the scripts that build C tests of the hook: how they are compiled. Needs $here, $kind and $work.
main=$here/../../main
cc=${CC:-cc}
arch=${VGPU_ARCH:-$(uname -m)}
flags="-std=gnu11 -D_GNU_SOURCE=1 -g -O1 -Wall -Wextra -pthread -fno-omit-frame-pointer"
flags="$flags -I$main/shm -I$main/../../../vgpu-kmod/src/main/c"
case $kind in
  plain | large-pages) sanitize= ;;
  asan) sanitize="-fsanitize=address,undefined -fno-sanitize-recover=undefined -DVGPU_SANITIZED" ;;
  tsan) sanitize="-fsanitize=thread -DVGPU_SANITIZED" ;;
esac
export ASAN_OPTIONS=detect_leaks=0:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=exitcode=99:die_after_fork=0:atexit_sleep_ms=0:suppressions=$here/tsan.supp

# Sets hook_objects to the hook's own sources, compiled for the sanitizer: it must see both sides, so they are in the
# program. Several tests use them: they are made in VGPU_HOOK_OBJECTS, if that names a folder, and taken as they are
# while no source is newer; otherwise in $work.
compile_hook() {
  made=${VGPU_HOOK_OBJECTS:-$work}/hook-$kind
  mkdir -p "$made"
  # One at a time: who comes second finds them.
  (
    if [ -n "${VGPU_HOOK_OBJECTS-}" ]; then flock 9; fi
    command="$cc $flags $sanitize -include $main/c/system/compat.h"
    sources="$main $main/../../../vgpu-kmod/src/main/c"
    # shellcheck disable=SC2086 # lists of words
    if [ ! -f "$made/stamp" ] || [ "$(cat "$made/stamp")" != "$command" ] ||
      [ -n "$(find $sources -newer "$made/stamp" -print | head -n 1)" ]; then
      rm -f "$made/stamp" "$made"/*.o
      printf '%s' "$command" > "$made/new"
      for source in "$main"/c/*/*.c "$main"/c/*/*-"$arch".S; do printf '%s\n' "$source"; done |
        (cd "$made" && xargs -P 2 -n 6 $command -c) || exit 1
      mv "$made/new" "$made/stamp"
    fi
  ) 9> "$made.lock" || exit 1
  hook_objects=$(echo "$made"/*.o)
}
