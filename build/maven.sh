# shellcheck shell=bash
# Sourced by ./vgpu: runs Maven with a log and a progress line, and builds what is stale.

# shellcheck source=build/silence.sh
. "$ROOT/build/silence.sh"

# Everything that the built jars depend on.
list_inputs() {
  find pom.xml LICENSE NOTICE .mvn vgpu-*/pom.xml samples/*/pom.xml vgpu-*/src/main samples/*/src/main -type f \
    -exec cksum {} + 2>/dev/null | LC_ALL=C sort -k 3
  # The class paths that are written at the end of a build hold absolute paths.
  printf '%s\n' "$ROOT"
}

# Succeeds if every file that the module's class path names is there.
classpath_complete() {
  local line entry entries
  [ -r "$1/target/classpath.txt" ] && IFS= read -r line <"$1/target/classpath.txt" || return 1
  IFS=: read -r -a entries <<<"$line"
  for entry in "${entries[@]}"; do
    [ -f "$entry" ] || return 1
  done
}

# Prints the modules whose class path the build writes to a file.
modules_with_classpath() {
  local pom
  for pom in $(grep -l maven-dependency-plugin vgpu-*/pom.xml samples/*/pom.xml 2>/dev/null); do
    [ ! -d "${pom%/pom.xml}/src/main/java" ] || printf '%s\n' "${pom%/pom.xml}"
  done
}

# Prints name, size and times of everything that is_fresh looks at; nothing where find cannot. The file names what the
# class paths hold.
list_seen() {
  local entries
  IFS=: read -r -a entries 2>/dev/null <"$1"
  find pom.xml LICENSE NOTICE .mvn vgpu-*/pom.xml samples/*/pom.xml vgpu-*/src/main samples/*/src/main "$STAMP" \
    ${entries[@]+"${entries[@]}"} -type f -printf '%p %s %T@ %C@\n' 2>/dev/null
}

# Succeeds if what was built last is what the sources say now. It reads the sources only if a file has another size or
# time than when they were last read.
is_fresh() {
  local module modules seen
  [ -r "$STAMP" ] || return 1
  if [ -s "$SEEN" ] && list_seen "$SEEN.entries" | cmp -s - "$SEEN"; then return 0; fi
  modules=$(modules_with_classpath)
  for module in $modules; do
    classpath_complete "$module" || return 1
  done
  # Before the sources are read: a file that changes meanwhile has another time than here.
  seen=$(mktemp "$SEEN.XXXXXX" 2>/dev/null) || seen=
  if [ -n "$seen" ]; then
    for module in $modules; do
      printf '%s:' "$module/target/classpath.txt"
      cat "$module/target/classpath.txt"
    done | tr : '\n' | awk 'NF && !had[$0]++ { printf "%s%s", separator, $0; separator = ":" } END { print "" }' \
      >"$seen.entries"
    list_seen "$seen.entries" >"$seen"
  fi
  if ! list_inputs | cmp -s - "$STAMP"; then
    [ -z "$seen" ] || rm -f "$seen" "$seen.entries"
    return 1
  fi
  if [ -n "$seen" ]; then mv -f "$seen.entries" "$SEEN.entries" && mv -f "$seen" "$SEEN"; fi
  return 0
}

# Stops the command that runs in the background, with all that it started.
stop_running() {
  local tries=50
  [ -n "${RUNNING-}" ] || return 0
  kill -TERM -- "-$RUNNING" 2>/dev/null
  while [ $tries -gt 0 ] && kill -0 -- "-$RUNNING" 2>/dev/null; do
    sleep 0.1
    tries=$((tries - 1))
  done
  kill -KILL -- "-$RUNNING" 2>/dev/null
  wait "$RUNNING" 2>/dev/null
  RUNNING=
}

interrupted() {
  trap '' INT TERM HUP
  stop_running
  [ -z "${DRAWER-}" ] || kill "$DRAWER" 2>/dev/null
  [ -z "${WATCHER-}" ] || kill "$WATCHER" 2>/dev/null
  clear_line
  say "interrupted"
  exit "$1"
}

is_terminal() {
  [ -t 2 ] && [ "${TERM-dumb}" != dumb ]
}

clear_line() {
  if is_terminal; then printf '\r\033[K' >&2; fi
}

# draw_progress <label> <filter>: redraws one line on the terminal until it is killed.
draw_progress() {
  local start=$SECONDS detail text width
  trap 'exit 0' TERM
  width=$(stty size <&2 2>/dev/null)
  width=${width#* }
  while kill -0 $$ 2>/dev/null; do
    detail=$(tail -n 400 "$LOG" 2>/dev/null | "$2")
    text="vgpu: $1${detail:+: $detail}"
    printf '\r\033[K%.*s, %d s' "$((${width:-80} - 10))" "$text" "$((SECONDS - start))" >&2
    sleep 0.5
  done
}

# The part of Maven's log that the progress line shows.
maven_progress() {
  awk '
    /^\[INFO\] Building [^ ]+ .*\[[0-9]+\/[0-9]+\]/ { module = $3 " " $NF; file = "" }
    /^(\[INFO\] )?Downloading from / { n = split($NF, part, "/"); file = ", fetching " part[n] }
    /^\[INFO\] (---|Downloaded)/ { file = "" }
    END { if (module != "") print module file; else if (file != "") print substr(file, 3) }'
}

# run_logged <label> <filter> <command...>: runs it with its output appended to LOG and one progress line on standard
# error; on an interrupt it leaves no process behind. Where ANNOUNCED is set, that line has been printed. Where
# SILENT_AT_MOST is set, a command that writes nothing for so many seconds is ended.
run_logged() {
  local label=$1 filter=$2 rc=0
  shift 2
  RUNNING='' DRAWER='' WATCHER=''
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
  trap 'interrupted 129' HUP
  if is_terminal; then
    draw_progress "$label" "$filter" 9>&- &
    DRAWER=$!
  elif [ -z "${ANNOUNCED-}" ]; then
    say "$label (log: $LOG)"
  fi
  # Job control gives the command a process group of its own, and leaves SIGINT as it is in it. It keeps the lock open,
  # so that the lock outlasts this script, should that be killed.
  set -m
  "$@" </dev/null >>"$LOG" 2>&1 &
  RUNNING=$!
  set +m
  if [ -n "${SILENT_AT_MOST-}" ]; then
    rm -f "$LOG.silent"
    end_if_silent "$RUNNING" >/dev/null 2>&1 9>&- &
    WATCHER=$!
  fi
  wait "$RUNNING" 2>/dev/null || rc=$?
  RUNNING=
  if [ -n "$WATCHER" ]; then
    kill "$WATCHER" 2>/dev/null
    wait "$WATCHER" 2>/dev/null
    WATCHER=
    tell_silence "$label"
  fi
  if [ -n "$DRAWER" ]; then
    kill "$DRAWER" 2>/dev/null
    wait "$DRAWER" 2>/dev/null
    DRAWER=
    clear_line
  fi
  trap - INT TERM HUP
  return "$rc"
}

# Prints what matters of a failed build's log: compiler messages, what each failed test said, Maven's own errors. Of a
# long message of a test (a program's whole output), these are the first and last lines and those that tell a failure.
failure_lines() {
  awk '
    function tell_message(  i, told) {
      for (i = 1; i <= lines; i++) {
        if (lines > 14 && i > 2 && i <= lines - 4 && (message[i] !~ TELLING || message[i] ~ /warning: / || told++ == 10)) {
          continue
        }
        print "    " message[i]
      }
      lines = 0
    }
    BEGIN { TELLING = "FAIL|WARNING: |ERROR: |[.][ch]:[0-9]+: " }
    /<<< (FAILURE|ERROR)!$/ && !/Tests run:/ {
      tell_message()
      sub(/^\[ERROR\] /, ""); sub(/ -- Time elapsed.*/, ""); print "failed: " $0; test = 1; next
    }
    test && /^\tat / { tell_message(); if (/dev\.vgpu/) { print "  " $0; test = 0 } next }
    test && /^\[(INFO|WARNING|ERROR|DEBUG)\]/ { tell_message(); test = 0 }
    test { if (!/^$/) message[++lines] = $0; next }
    /^\[WARNING\] .*\.java:/ { sub(/^\[WARNING\] /, ""); warning[++warnings] = $0; next }
    /-Werror specified/ { for (i = 1; i <= warnings; i++) print warning[i]; warnings = 0; next }
    !/^\[ERROR\] / { next }
    { sub(/^\[ERROR\] /, "") }
    /^ *$/ || /^To see the full stack|^Re-run Maven|^For more information about/ { next }
    /^\[Help [0-9]|^After correcting/ { next }
    /^ +mvn <args>|^-> \[Help|^See .*surefire-reports|^See dump files|^(Failures|Errors): *$|^Tests run:/ { next }
    /^COMPILATION ERROR|^Failed to execute goal .*(There are test failures|Compilation failure)/ { next }
    { print }' "$LOG" | awk '!seen[$0]++' | cut -c 1-400
}

explain_failure() {
  local lines
  lines=$(failure_lines)
  if [ -n "$lines" ]; then
    printf '%s\n' "$lines" | head -n 40 | sed 's/^/  /' >&2
  else
    tail -n 15 "$LOG" | sed 's/^/  /' >&2
  fi
  # Maven's own words, because a test may tell of a connection, too.
  lines=$(grep -a '^\[ERROR\].*Could not transfer \(artifact\|metadata\) ' "$LOG")
  if printf '%s\n' "$lines" | grep -q -e 'UnknownHostException' -e 'Unknown host' -e 'Connection timed out' \
    -e 'Connection refused' -e 'Network is unreachable' -e 'Temporary failure in name resolution'; then
    say "The first build fetches its dependencies from Maven Central, which this machine could not reach." \
      "Behind a proxy or a mirror, set it in ~/.m2/settings.xml."
  elif printf '%s\n' "$lines" | grep -q 'PKIX path building failed'; then
    say "$JDK does not trust the certificate that Maven Central, or a proxy before it, shows." \
      "Import the proxy's authority into that JDK (keytool -importcert -cacerts; Debian: update-ca-certificates)."
  fi
  say "the whole log: $LOG"
}

# maven <label> <arguments...>: one Maven run. A jar holds the rights of the files that went into it, so these do not
# depend on the caller's umask.
maven() {
  local label=$1 mask rc=0
  shift
  mask=$(umask)
  umask 022
  # shellcheck disable=SC2086 # VGPU_MAVEN_ARGS is a list of words
  # What a script starts in the background ignores SIGINT, and under nohup SIGHUP; so would all programs that tests
  # interrupt.
  if env --default-signal=INT,HUP true 2>/dev/null; then
    set -- --default-signal=INT,HUP JAVA_HOME="$JDK" VGPU_BUILDING=1 mvn -B ${VGPU_MAVEN_ARGS-} "$@"
  else
    set -- JAVA_HOME="$JDK" VGPU_BUILDING=1 mvn -B ${VGPU_MAVEN_ARGS-} "$@"
  fi
  run_logged "$label" maven_progress env "$@" || rc=$?
  umask "$mask"
  return $rc
}

# Makes a file in target empty, or there at all.
touch_target() {
  if ! { mkdir -p target && : >>"$1"; } 2>/dev/null; then
    die 1 "cannot write $ROOT/target: building needs a checkout that $(id -un) can write to"
  fi
}

start_log() {
  touch_target "$LOG"
  : >"$LOG"
}

# Waits until no other ./vgpu builds in this checkout; then this one may.
lock_build() {
  touch_target target/vgpu-build.lock
  if command -v flock >/dev/null 2>&1; then
    exec 9>>target/vgpu-build.lock
    flock -n 9 && return 0
    say "another ./vgpu is building in this checkout; waiting for it"
    flock 9
  else
    lock_with_directory
  fi
}

# Where there is no flock: a directory that holds its owner's process id.
lock_with_directory() {
  local told='' owner
  until mkdir target/vgpu-build.lock.d 2>/dev/null; do
    owner=$(cat target/vgpu-build.lock.d/pid 2>/dev/null)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then
      rm -rf target/vgpu-build.lock.d
      continue
    fi
    [ -n "$told" ] || say "another ./vgpu is building in this checkout; waiting for it"
    told=1
    sleep 0.3
  done
  echo $$ >target/vgpu-build.lock.d/pid
  trap 'rm -rf "$ROOT/target/vgpu-build.lock.d"' EXIT
}

unlock_build() {
  exec 9>&-
  rm -rf target/vgpu-build.lock.d
  trap - EXIT
}

# Builds what is stale, without tests and slow checks.
build_stale() {
  local goals='package' inputs
  is_fresh && return 0
  require_machine
  lock_build
  if ! is_fresh; then
    start_log
    inputs=$(list_inputs)
    # A file that is gone would otherwise stay in target/classes; a changed pom may mean anything.
    if [ ! -r "$STAMP" ] || ! same_names "$inputs"; then goals='clean package'; fi
    rm -f "$STAMP"
    # shellcheck disable=SC2086 # a list of words
    if ! maven 'building' -T1C -Dvgpu.quick $goals; then
      say "the build failed:"
      explain_failure
      exit 1
    fi
    printf '%s\n' "$inputs" >"$STAMP.new" && mv "$STAMP.new" "$STAMP"
  fi
  unlock_build
}

# Succeeds if no file of the last build is gone and no pom changed.
same_names() {
  printf '%s\n' "$1" | awk '
    { name = $0; sub(/^[0-9]+ [0-9]+ /, "", name) }
    NR == FNR { now[name] = $0; next }
    !(name in now) { exit 1 }
    name ~ /pom\.xml$/ && now[name] != $0 { exit 1 }' - "$STAMP"
}
