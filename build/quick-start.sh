# shellcheck shell=bash
# Sourced by ./vgpu: an archive of the command's classes, as the JVM maps them (class data sharing). The command starts
# in half the time with it. The JVM refuses an archive of another JVM, or of other jars, and starts without.

# Sets ARCHIVE to the file for this JDK. Each JDK has its own: a JDK of another version never finds that of the last.
name_archive() {
  local line version=
  while IFS= read -r line; do
    case $line in JAVA_RUNTIME_VERSION=* | JAVA_VERSION=* | IMPLEMENTOR_VERSION=*) version=$version-${line#*=} ;; esac
  done 2>/dev/null <"$JDK/release"
  version=$JDK$version
  ARCHIVE=$ROOT/target/archive/${version//[!A-Za-z0-9.+-]/_}.jsa
}

# Succeeds if ARCHIVE is newer than every jar of the class path. An empty one is of a JVM that cannot make it.
archive_is_current() {
  local jars jar
  [ -e "$ARCHIVE" ] || return 1
  IFS=: read -r -a jars <<<"$CLASSPATH_LINE"
  for jar in "${jars[@]}"; do
    [ "$ARCHIVE" -nt "$jar" ] || return 1
  done
}

# Sets ARCHIVE_OPTION to the JVM's option, having made the archive if it is stale; to nothing if there is none.
find_archive() {
  ARCHIVE_OPTION=
  name_archive
  if ! archive_is_current; then
    # A test of the build that runs below ./vgpu starts without.
    [ -z "${VGPU_BUILDING-}" ] && [ -w "$ROOT/target" ] && make_archive || return 0
  fi
  [ ! -s "$ARCHIVE" ] || ARCHIVE_OPTION=-XX:SharedArchiveFile=$ARCHIVE
}

# Makes ARCHIVE: a file of its own that takes the place of the last, since a JVM that maps a file which is written to
# crashes. So it is on the disk before it has its name.
make_archive() {
  local work=$ROOT/target/archive.$$ rc=0
  (
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    umask 022
    mkdir -p "$ROOT/target/archive" "$work" && chmod 0700 "$work" || exit 1
    : >"$work/start" # what changes from here on is newer than the archive
    list_command_classes "$work" 1 ls
    list_command_classes "$work" 2 --version
    list_command_classes "$work" 3 run --memory 1GiB -- true
    cat "$work"/*.list 2>/dev/null | awk '!seen[$0]++' >"$work/classes"
    # shellcheck disable=SC2086 # a list of words
    if ! [ -s "$work/classes" ] || ! "$JDK/bin/java" $QUICK_START -Xshare:dump -Xlog:disable \
      -XX:SharedClassListFile="$work/classes" -XX:SharedArchiveFile="$work/classes.new" -cp "$CLASSPATH_LINE" \
      >/dev/null 2>&1; then
      rm -f "$work/classes.new"
      : >"$work/classes.new"
    fi
    sync "$work/classes.new" 2>/dev/null
    touch -r "$work/start" "$work/classes.new" && mv -f "$work/classes.new" "$ARCHIVE"
  ) 2>/dev/null || rc=$?
  # Ctrl-C is for the command, which has not begun.
  case $rc in 130 | 143) exit $rc ;; esac
  return $rc
}

# list_command_classes <directory> <number> <command...>, run in a run directory of its own over an emulated GPU.
list_command_classes() {
  local directory=$1 number=$2
  shift 2
  # shellcheck disable=SC2086 # a list of words
  env -u VGPU_NVML -u VGPU_DEBUG -u VGPU_EMULATOR_DIR VGPU_RUN_DIR="$directory/run" VGPU_EMULATOR=devices=1 \
    VGPU_HOME="$ROOT" "$JDK/bin/java" $QUICK_START -XX:DumpLoadedClassList="$directory/$number.list" \
    -cp "$CLASSPATH_LINE" dev.vgpu.cli.VgpuCommand "$@" </dev/null >/dev/null 2>&1
}
