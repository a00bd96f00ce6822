#!/usr/bin/env bash
# Compares what steps.sh has left and prints a table, or with AS_JSON one object. Usage: report.sh OUT
# Exit status: 0 all held, 1 something did not, 69 nothing was run.
set -u
OUT=$1
# What a run under vgpu may take longer than its share explains: it meets the seat, and the machine has other work.
ALLOWED_MS=3000

# What differs between two runs of one program on one GPU, or under a quota: process ids, times, sizes of memory.
compared() {
  grep -v '^#' "$OUT/$1.$2.out" | case $1 in
    pycuda-tests) grep -E ' (passed|failed|skipped|error)$' ;;
    numba-tests) sed -n 's/^.*\.\.\. \(ok\|FAIL\|ERROR\|skipped\).*/& \1/p' ;;
    hashcat) sed -e 's/^\( *Memory\.[A-Za-z.]*: \).*/\1…/' ;;
    nvtop) sed -e 's/MEM\[ *[0-9.]*[MG]i\/[0-9.]*[MG]i\]/MEM[…]/' ;;
    *) cat ;;
  esac
}

# A measurement of a run, or nothing: measured STEP MODE NAME
measured() {
  sed -n "s/^# $3=//p" "$OUT/$1.$2.out" | tail -n 1
}

# The exit status of the runs of a step, or ? if they differ or there was none, and the median of their milliseconds.
timed() {
  [ -s "$OUT/$1.$2.time" ] || {
    echo '? 0'
    return
  }
  local statuses median
  statuses=$(cut -d ' ' -f 1 "$OUT/$1.$2.time" | sort -u)
  median=$(cut -d ' ' -f 2 "$OUT/$1.$2.time" | sort -n | awk '{ ms[NR] = $1 } END { print ms[int((NR + 1) / 2)] }')
  [ "$(wc -w <<<"$statuses")" = 1 ] || statuses=?
  echo "$statuses $median"
}

# Whether the run under vgpu took longer than its share explains. With a share, only the GPU's part of the time grows.
is_slower() {
  awk -v bare="$BARE_MS" -v ms="$MS" -v gpu="${GPU_SECONDS:-0}" -v asked="${ASKED:-100}" -v allowed=$ALLOWED_MS \
    'BEGIN { exit !(ms > bare + 1000 * gpu * (100 / asked - 1) + allowed) }'
}

# A number of the seat's account of a step, or nothing.
accounted() {
  tr ',{}[]' '\n' <"$OUT/$1.usage" | sed -n "s/^ *\"$2\" *: *//p" | head -n 1
}

mib() {
  [ -z "$1" ] || echo $(($1 >> 20))
}

quota_mib() {
  case $1 in
    *GiB) echo $((${1%GiB} * 1024)) ;;
    *MiB) echo "${1%MiB}" ;;
  esac
}

# Reads the next step from standard input; sets what is known of it, and VERDICT: held, or what did not.
next_step() {
  local busy
  IFS='|' read -r NAME VERSION QUOTA ASKED || return 1
  QUOTA=$(quota_mib "$QUOTA")
  read -r BARE_STATUS BARE_MS <<<"$(timed "$NAME" bare)"
  read -r STATUS MS <<<"$(timed "$NAME" vgpu)"
  SHOWN=$(mib "$(measured "$NAME" vgpu memory_shown)")
  [ "$NAME" != nvtop ] || SHOWN=$(sed -n 's/.*MEM\[.*\/\([0-9]*\)\.000Mi\].*/\1/p' "$OUT/nvtop.vgpu.out")
  TAKEN=$(mib "$(measured "$NAME" vgpu memory_taken)")
  GPU_SECONDS=$(accounted "$NAME" gpu_seconds)
  LAUNCHES=$(accounted "$NAME" launches)
  HELD=$(measured "$NAME" vgpu busy_percent)
  busy=$(measured "$NAME" vgpu busy_seconds)
  # A program that does not know how long its kernels take says for how long it had some; the seat knows the rest.
  [ -z "$busy" ] || HELD=$(awk -v gpu="$GPU_SECONDS" -v busy="$busy" 'BEGIN { printf "%.2f", 100 * gpu / busy }')
  PASSED=$(compared "$NAME" bare | grep -c -e ' passed$' -e ' ok$')
  SAME=yes
  [ "$(compared "$NAME" bare)" = "$(compared "$NAME" vgpu)" ] || SAME=no
  VERDICT=held
  if [ "$BARE_STATUS" != "$STATUS" ] || [ "$STATUS" = '?' ]; then
    VERDICT='exit status'
  elif [ $SAME = no ]; then
    VERDICT=output
  elif [ "${SHOWN:-$QUOTA}" -ne "$QUOTA" ] || [ "${TAKEN:-0}" -gt "$QUOTA" ]; then
    VERDICT=memory
  elif [ -n "$HELD" ] && awk -v held="$HELD" -v asked="$ASKED" 'BEGIN { exit !(held - asked > 1 || asked - held > 5) }'
  then
    VERDICT=share
  elif is_slower; then
    VERDICT=slower
  fi
  # These fail here, the same way each time: without a compiler, without NVIDIA's libraries.
  case $NAME in
    hashcat | *-tests) ;;
    *) [ "$BARE_STATUS" = 0 ] || VERDICT='bare run' ;;
  esac
}

# Whether both runs said the same; of tests: how many pass.
output_text() {
  local text=differs
  [ $SAME = no ] || text=same
  case $NAME in
    *-tests) text="$text, $PASSED of $(compared "$NAME" bare | wc -l) pass" ;;
  esac
  echo "$text"
}

seconds() {
  awk -v ms="$1" 'BEGIN { printf "%.1f", ms / 1000 }'
}

text_row() {
  printf '%-13s %-20s %-8s %-23s %-34s %-13s %8s %8s %9s %9s  %s\n' "$@"
}

print_text() {
  local memory share
  printf 'commit %s, %s processors, load %s, %s\n' "${COMMIT:-unknown}" "$(nproc)" \
    "$(cut -d ' ' -f 1 /proc/loadavg)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  printf 'slower: vgpu, s > bare, s + GPU, s x (100 / share - 1) + %s s; times are medians of the runs\n\n' \
    $((ALLOWED_MS / 1000))
  text_row what version exit output 'memory, MiB' 'share, %' 'bare, s' 'vgpu, s' 'GPU, s' launches verdict
  while next_step; do
    memory="quota $QUOTA${SHOWN:+, sees $SHOWN}${TAKEN:+, took $TAKEN}"
    share=${HELD:+$HELD of $ASKED}
    text_row "$NAME" "$VERSION" "$BARE_STATUS/$STATUS" "$(output_text)" "$memory" "${share:--}" \
      "$(seconds "$BARE_MS")" "$(seconds "$MS")" "$(printf '%.3f' "${GPU_SECONDS:-0}")" "${LAUNCHES:-0}" "$VERDICT"
  done <"$OUT/steps"
  for file in "$OUT"/*.skipped; do
    [ ! -e "$file" ] || printf '%-13s skipped: %s\n' "$(basename "$file" .skipped)" "$(cat "$file")"
  done
}

# A JSON text.
quoted() {
  printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"
}

print_json() {
  local comma=''
  printf '{"commit": %s, "load_average": %s, "steps": [' "$(quoted "${COMMIT:-}")" "$(cut -d ' ' -f 1 /proc/loadavg)"
  while next_step; do
    printf '%s\n  {"name": %s, "version": %s, "exit_bare": %s, "exit": %s, "same_output": %s, "quota_mib": %s, ' \
      "$comma" "$(quoted "$NAME")" "$(quoted "$VERSION")" "${BARE_STATUS/\?/null}" "${STATUS/\?/null}" \
      "$(if [ $SAME = yes ]; then echo true; else echo false; fi)" "$QUOTA"
    printf '"sees_mib": %s, "took_mib": %s, "share_percent": %s, "held_percent": %s, "bare_ms": %s, "ms": %s, ' \
      "${SHOWN:-null}" "${TAKEN:-null}" "${ASKED:-null}" "${HELD:-null}" "$BARE_MS" "$MS"
    printf '"gpu_seconds": %s, "launches": %s, "verdict": %s}' "${GPU_SECONDS:-null}" "${LAUNCHES:-null}" \
      "$(quoted "$VERDICT")"
    comma=,
  done <"$OUT/steps"
  printf '\n], "skipped": {'
  comma=''
  for file in "$OUT"/*.skipped; do
    [ -e "$file" ] || continue
    printf '%s%s: %s' "$comma" "$(quoted "$(basename "$file" .skipped)")" "$(quoted "$(cat "$file")")"
    comma=', '
  done
  printf '}}\n'
}

[ -s "$OUT/steps" ] || {
  echo 'vgpu: no client could be had:' >&2
  cat "$OUT"/*.skipped >&2
  exit 69
}
if [ -n "${AS_JSON-}" ]; then print_json; else print_text; fi
while next_step; do
  [ "$VERDICT" = held ] || exit 1
done <"$OUT/steps"
