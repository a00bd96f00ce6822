# shellcheck shell=bash
# Sourced by build/k8s-check.sh: a role is killed by SIGKILL while it works, in each of KILLS rounds. After each round,
# nothing is given twice, and nothing is kept from the pods.

# kill_role NAME
kill_role() {
  kill -KILL "${PID[$1]}"
  wait "${PID[$1]}" 2>/dev/null
}

# archive_classes NAME: the role, whose process has worked, starts from an archive of its classes from now on.
archive_classes() {
  local start=${ROLE[$1]}
  JVM[$1]="-XX:SharedArchiveFile=$WORK/$1.jsa -XX:TieredStopAtLevel=1"
  stop "$1"
  [ -s "$WORK/$1.jsa" ] || fail "$1 leaves no archive of its classes: $(last_line "$1")" || return 1
  $start
}

# lap NAME: adds the milliseconds since the last lap to the sum of that name.
declare -A LAPS=()
lap() {
  local now=${EPOCHREALTIME/./}
  LAPS[$1]=$((${LAPS[$1]-0} + (now - LAP) / 1000)) LAP=$now
}

# random_time MILLISECONDS: sleeps for a random time, at most this long.
random_time() {
  local ms=$((RANDOM * $1 / 32768))
  sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# after_writes NUMBER: waits until vgpu's scheduler has written so often to pods since the last time; 3 s at most.
after_writes() {
  local left=$1 line end=$((SECONDS + 3))
  while [ "$left" -gt 0 ] && [ $SECONDS -lt $end ]; do
    if read -r -u "$AUDIT" line; then
      case $line in *vgpu-system:vgpu-scheduler*'"resource":"pods"'*) left=$((left - 1)) ;; esac
    else
      sleep 0.002
    fi
  done
}

# in_rounds COMMAND: runs it KILLS times, with the number of the round.
in_rounds() {
  local name laps
  LAPS=()
  RANDOM=$SEED
  for ((ROUND = 1; ROUND <= KILLS; ROUND++)); do
    LAP=${EPOCHREALTIME/./}
    "$1" || fail "round $ROUND of $KILLS: ${REASON:-$(tail -n 1 "$WORK/last")}" || return 1
    laps=$(for name in "${!LAPS[@]}"; do printf ', %s %s' "$name" "${LAPS[$name]}"; done)
    echo "$NOTE; nothing leaked or given twice; ms${laps#,}" >>"$WORK/log/kills"
  done
}

# The gangs that there are, by name: how many pods each has.
declare -A SIZE=()
HALVES=8

# fill_up ROOM: gangs of one to three pods, each of which has half of a GPU.
fill_up() {
  local room=$1 size name
  while [ "$room" -gt 0 ]; do
    size=$((RANDOM % 3 + 1))
    [ $size -le "$room" ] || size=$room
    name=gang-$((++NUMBER))
    SIZE[$name]=$size
    gang $name $size 50 | sed 's/"1Gi"/"20Gi"/'
    room=$((room - size))
  done
}

# take_away ROOM: names pods of random gangs, at least so many.
take_away() {
  local room=$1 names name i
  names=("${!SIZE[@]}")
  while [ "$room" -gt 0 ]; do
    name=${names[$((RANDOM % ${#names[@]}))]}
    [ -n "${SIZE[$name]-}" ] || continue
    for ((i = 1; i <= ${SIZE[$name]}; i++)); do echo "$name-$i"; done
    room=$((room - ${SIZE[$name]}))
    unset "SIZE[$name]"
  done
}

places() {
  k get pods -o jsonpath="{range .items[*]}{.metadata.name} {.spec.nodeName} \
{.metadata.annotations.vgpu\.dev/reservation}{'\n'}{end}" >"$WORK/places"
}

# Says which GPU was given twice, or is not on its pod's node. Only bound pods count.
misplaced() {
  awk 'NF == 3 {
      match($3, /GPU-[ab][01]/) && gpu = substr($3, RSTART, RLENGTH)
      if (substr(gpu, 5, 1) != substr($2, 6)) print $1, "is on", $2, "and has", $3
      match($3, /"share":[0-9]+/) && share[gpu] += substr($3, RSTART + 8, RLENGTH - 8)
      match($3, /"memory":"[0-9]+/) && memory[gpu] += substr($3, RSTART + 10, RLENGTH - 10)
    }
    END { for (gpu in share) if (share[gpu] > 100 || memory[gpu] > 40 * 2^30) print gpu, "has", share[gpu] "%" }
  ' "$WORK/places"
}

# all_placed: all pods are bound, to their own parts of the GPUs.
all_placed() {
  places || return 1
  TWICE=$TWICE$(misplaced)
  [ "$(awk 'NF == 3' "$WORK/places" | wc -l)" = $HALVES ] && [ "$(wc -l <"$WORK/places")" = $HALVES ]
}

# count_places FILE: how many of the pods that the file makes have a node.
count_places() {
  sed -n 's/^  name: /^/p' "$1" | sed 's/$/ rack/' | grep -c -f - "$WORK/places"
}

# Pods go and others come that need all that is free then. The scheduler is killed meanwhile.
kill_the_scheduler() {
  local gone bound jobs=()
  take_away 4 >"$WORK/gone"
  gone=$(wc -l <"$WORK/gone")
  fill_up "$gone" >"$WORK/come"
  while read -r -u "$AUDIT" _; do :; done
  # shellcheck disable=SC2046 # several names
  k delete pod $(<"$WORK/gone") --force --grace-period=0 >"$WORK/deleted" 2>&1 &
  jobs+=($!)
  k create -f "$WORK/come" >"$WORK/created" 2>&1 &
  jobs+=($!)
  # Half of the kills come after one of the writes, in which a place is kept or a pod is bound.
  if [ $((ROUND % 2)) = 0 ]; then after_writes $((RANDOM % (2 * gone) + 1)); else random_time 1000; fi
  lap kill
  kill_role vgpu-scheduler
  wait "${jobs[@]}" || fail "$(cat "$WORK/deleted" "$WORK/created")" || return 1
  places || return 1
  TWICE=$(misplaced)
  bound=$(count_places "$WORK/come")
  case $bound in 0) EARLY=$((EARLY + 1)) ;; "$gone") LATE=$((LATE + 1)) ;; *) AMID=$((AMID + 1)) ;; esac
  # Nobody else would renew it, and the next process would wait for 15 s.
  k delete lease vgpu-scheduler -n vgpu-system >"$WORK/last" 2>&1
  start_extender
  lap between
  until_true 90 extender_ready
  lap ready
  until_true 90 all_placed || fail "kept from the pods: $(waiting_text) $(last_line vgpu-scheduler)" || return 1
  [ -z "$TWICE" ] || fail "given twice: $TWICE" || return 1
  lap placed
  NOTE="seed $SEED, $ROUND kills: $EARLY before the first binding of a round, $AMID between two, $LATE after the last"
}

# All that there is on two nodes is in use, by gangs of one to three pods.
scenario_kills() {
  local failed=1
  BACKOFF=1
  stop kube-scheduler
  start_scheduler
  exec {AUDIT}<"$WORK/audit"
  stop vgpu-scheduler
  JVM[vgpu-scheduler]=-XX:ArchiveClassesAtExit=$WORK/vgpu-scheduler.jsa
  start_extender
  kills_of_the_scheduler && failed=0
  exec {AUDIT}<&-
  BACKOFF=''
  unset "JVM[vgpu-scheduler]"
  stop kube-scheduler
  start_scheduler
  return $failed
}

kills_of_the_scheduler() {
  NUMBER=0 AMID=0 EARLY=0 LATE=0 TWICE='' SIZE=()
  fill_up $HALVES >"$WORK/come"
  make <"$WORK/come" && until_true 60 all_placed || fail "not bound: $(waiting_text)" || return 1
  archive_classes vgpu-scheduler || return 1
  until_true 60 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  in_rounds kill_the_scheduler
}
