# shellcheck shell=bash
# Sourced by build/maven.sh: ends a command that has written nothing for too long, and says what it was doing.

# Prints the stacks of a JVM's threads, of those that are in our code, in Maven's or in a test's: 12 frames each.
interesting_stacks() {
  timeout 20 "$JDK/bin/jcmd" "$1" Thread.print 2>/dev/null | awk '
    function tell() { if (ours && block != "") printf "%s", block; block = ""; frames = 0; ours = 0 }
    /^"/ { tell(); block = "    " $0 "\n"; ours = /^"main"/ }
    /^\t/ && block != "" && frames++ < 12 { block = block "    " $0 "\n"; if (/dev\.vgpu/) ours = 1 }
    /^$/ { tell() }
    END { tell() }' | cut -c 1-160
}

# Prints the processes of a process group, and where the threads of its JVMs are.
describe_group() {
  local pid
  echo "processes:"
  # shellcheck disable=SC2009 # pgrep prints no times
  ps -eo pgid,pid,ppid,etime,stat,args 2>/dev/null | awk -v group="$1" '$1 == group { sub(/^ *[0-9]+ /, ""); print }' |
    cut -c 1-160 | sed 's/^/  /'
  for pid in $(ps -eo pgid,pid,comm | awk -v group="$1" '$1 == group && $3 == "java" { print $2 }'); do
    echo "  threads of $pid:"
    interesting_stacks "$pid"
  done
}

# end_if_silent <process group>: ends it once LOG has not grown for SILENT_AT_MOST seconds. What it was doing is then in
# LOG.silent. Runs in the background until it is killed.
end_if_silent() {
  local size=-1 now quiet=$SECONDS pause=
  trap 'kill $pause 2>/dev/null; exit 0' TERM
  while :; do
    sleep 5 &
    pause=$!
    wait $pause
    now=$(wc -c <"$LOG")
    if [ "$now" != "$size" ]; then
      size=$now quiet=$SECONDS
    elif [ $((SECONDS - quiet)) -ge "$SILENT_AT_MOST" ]; then
      describe_group "$1" >"$LOG.silent"
      kill -KILL -- "-$1"
      return
    fi
  done
}

# Says that a command was ended by end_if_silent, if it was.
tell_silence() {
  [ -s "$LOG.silent" ] || return 0
  say "$1 has written nothing for $SILENT_AT_MOST s, and was ended. It was doing this:"
  tee -a "$LOG" <"$LOG.silent" | tail -n 120 >&2
  rm -f "$LOG.silent"
}
