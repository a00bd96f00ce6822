# shellcheck shell=bash
# Sourced by ./vgpu: runs the Kubernetes roles against a control plane of published programs.
# What is checked: build/k8s-check/scenarios.sh and claims.sh.

ASSET_NAMES='etcd kube-apiserver kube-scheduler kube-controller-manager'

k8s_check_help() {
  cat <<EOF2
Usage: ./vgpu k8s-check --assets DIR [--only NAME,...] [--kills N] [--seed N] [--image FILE] [--keep DIR]
                        [--json]
Start a Kubernetes control plane on loopback, install what is in vgpu-k8s-adapter/deploy, run vgpu-k8s under its service
accounts over an emulated GPU, and check what users rely on. Nodes are objects, and no container runs on them; but a
node with a kubelet and containerd runs what is installed and programs under virtual GPUs, if DIR has what it needs and
the caller is root. That node has mount and network namespaces of its own, and cgroups that are removed at the end.

      --assets DIR      Has the programs ${ASSET_NAMES// /, },
                        of 1.28 or newer; kubectl may be there too. Nothing is fetched. For the kubelet's node it has
                        ${KUBELET_NAMES// /, }.
      --only NAME,...   These scenarios alone, and those that they need: 'install', and for the names kubelet-*
                        'kubelet-daemon-set'. Names: --only list
      --kills N         The rounds of the scenarios 'kills', 'kubelet-kills' and 'kubelet-nodes', 1 to 100000.
                        Default: 5.
      --seed N          The random moments and choices of these scenarios begin with it, 0 to 32767. Default: a random
                        one, which is printed.
      --image FILE      The image of the kubelet's node, as 'podman save' writes it. Default: one that is made of this
                        machine's programs, with the command of the Containerfile.
      --keep DIR        Leave logs and state in DIR, which must be empty or not there.
      --json            Print one JSON object instead of the table.
  -h, --help            Show this help.

Certificates, tokens and state are new each time and go at the end. Only addresses of the loopback interface are used,
or of an own network namespace.
Exit codes: 0 all passed, 1 a scenario failed, 2 wrong usage, 69 a program is missing or does not run here,
130 ended by Ctrl-C.
EOF2
}

# Sets ASSETS, ONLY, KILLS, SEED, IMAGE, WORK, KEPT and AS_JSON from the command's arguments.
k8s_check_options() {
  local kept='' name
  ASSETS='' ONLY='' KILLS=5 SEED=$RANDOM IMAGE='' AS_JSON=''
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help)
        k8s_check_help
        exit 0
        ;;
      --json) AS_JSON=1 ;;
      --assets=* | --only=* | --kills=* | --seed=* | --image=* | --keep=*)
        name=${1%%=*}
        set -- "$name" "${1#*=}" "${@:2}"
        continue
        ;;
      --assets | --only | --kills | --seed | --image | --keep)
        [ -n "${2-}" ] || die 2 "$1 needs a value"
        case $1 in
          --assets) ASSETS=$2 ;;
          --only) ONLY=${2//,/ } ;;
          --kills) KILLS=$2 ;;
          --seed) SEED=$2 ;;
          --image) IMAGE=$2 ;;
          --keep) kept=$2 ;;
        esac
        shift
        ;;
      *) die 2 "./vgpu k8s-check does not know '$1'; see ./vgpu k8s-check --help" ;;
    esac
    shift
  done
  if [ "$ONLY" = list ]; then
    printf '%s\n' "${SCENARIOS// /$'\n'}"
    exit 0
  fi
  for name in $ONLY; do
    case " $SCENARIOS " in
      *" $name "*) ;;
      *) die 2 "there is no scenario '$name'; there are ${SCENARIOS// /, }" ;;
    esac
  done
  [[ $KILLS =~ ^[1-9][0-9]{0,4}$|^100000$ ]] || die 2 "--kills: '$KILLS' is not a number from 1 to 100000"
  [[ $SEED =~ ^[0-9]{1,5}$ ]] && [ "$SEED" -le 32767 ] || die 2 "--seed: '$SEED' is not a number from 0 to 32767"
  [ -n "$ASSETS" ] || die 2 "./vgpu k8s-check needs --assets DIR; see ./vgpu k8s-check --help"
  cd "$START" || exit 1
  [ -d "$ASSETS" ] || die 2 "--assets: there is no directory $ASSETS"
  ASSETS=$(cd -P "$ASSETS" && pwd) || exit 1
  if [ -n "$IMAGE" ]; then
    name=$(readlink -e "$IMAGE") || die 2 "--image: there is no file $IMAGE"
    IMAGE=$name
  fi
  make_work "$kept"
}

# go_apart ARGUMENTS...: starts again in namespaces of its own, where DIR has what a node with a kubelet needs.
go_apart() {
  MISSING=$(missing_of_kubelet)
  APART=${VGPU_K8S_CHECK_APART-}
  unset VGPU_K8S_CHECK_APART
  if [ -n "$APART" ]; then
    trap_ends
    make_node_of_its_own || die 1 "the directories of a node of its own cannot be made"
  elif [ -z "$MISSING" ]; then
    rmdir "$WORK"
    prepare_command
    VGPU_K8S_CHECK_APART=1 exec unshare --mount --net --propagation private "$ROOT/vgpu" k8s-check "$@"
  fi
}

# with_needed NAME...: prints the names, with the one that starts the kubelet's node before those that use it.
with_needed() {
  local name started=''
  for name in "$@"; do
    case $started:$name in
      yes:kubelet-daemon-set) continue ;;
      :kubelet-daemon-set) started=yes ;;
      :kubelet-*)
        started=yes
        echo kubelet-daemon-set
        ;;
    esac
    echo "$name"
  done
}

make_work() {
  KEPT=$1
  if [ -z "$KEPT" ]; then
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-k8s.XXXXXX") || exit 1
    return
  fi
  cd "$START" || exit 1
  mkdir -p "$KEPT" || die 1 "cannot make the directory $KEPT"
  WORK=$(cd -P "$KEPT" && pwd) || exit 1
  [ -z "$(ls -A "$WORK")" ] || die 2 "--keep: $WORK is not empty; name a new directory"
}

require_assets() {
  local name
  for name in $ASSET_NAMES; do
    [ -x "$ASSETS/$name" ] || die $EX_UNAVAILABLE "--assets: $ASSETS has no program $name; it needs $ASSET_NAMES"
    "$ASSETS/$name" --version >"$WORK/version" 2>&1 ||
      die $EX_UNAVAILABLE "$ASSETS/$name does not run here: $(tail -n 1 "$WORK/version")"
  done
  for name in openssl curl; do
    command -v $name >/dev/null 2>&1 || die $EX_UNAVAILABLE "./vgpu k8s-check needs $name, which is not installed"
  done
  KUBECTL=$ASSETS/kubectl
  [ -x "$KUBECTL" ] || KUBECTL=$(command -v kubectl) ||
    die $EX_UNAVAILABLE "kubectl is neither in $ASSETS nor on the PATH"
  KUBERNETES=$("$ASSETS/kube-apiserver" --version | sed 's/^Kubernetes //')
  [[ $KUBERNETES =~ ^v1\.([0-9]+)\. ]] && MINOR=${BASH_REMATCH[1]} && [ "$MINOR" -ge 28 ] ||
    die $EX_UNAVAILABLE "$ASSETS/kube-apiserver is $KUBERNETES; vgpu-k8s needs v1.28 or newer"
}

end_k8s_check() {
  trap '' INT TERM
  stop_all
  [ -z "$APART" ] || end_node
  [ -n "$KEPT" ] || rm -rf "$WORK"
}

trap_ends() {
  trap end_k8s_check EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# A JSON text.
json_text() {
  printf '"%s"' "$(printf '%s' "$1" | tr '\n' ' ' | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"
}

# report NAME MILLISECONDS: REASON is empty if it has passed; NOTE is what it measured. STATE is what the API server
# told when it failed.
report() {
  local word=passed
  [ -z "$REASON" ] || word=failed
  if [ -z "$AS_JSON" ]; then
    printf '%s  %-18s %6s s%s\n' $word "$1" "$(awk -v ms="$2" 'BEGIN { printf "%.1f", ms / 1000 }')" \
      "$(printf '%s' "${REASON:+  $REASON}${NOTE:+  $NOTE}" | tr '\n' ' ' | cut -c 1-600)"
    [ -z "$STATE" ] || sed 's/^/          /' <<<"$STATE"
  else
    [ "$((PASSED + FAILED))" -eq 0 ] || printf ','
    printf '\n  {"name": "%s", "passed": %s, "ms": %s, ' "$1" \
      "$(if [ $word = passed ]; then echo true; else echo false; fi)" "$2"
    printf '"reason": %s, "note": %s, "state": %s}' "$(json_text "$REASON")" "$(json_text "$NOTE")" \
      "$(json_text "$STATE")"
  fi
  if [ $word = passed ]; then PASSED=$((PASSED + 1)); else FAILED=$((FAILED + 1)); fi
}

# state_of_pods: why pods wait, what happened last, and which devices there are.
state_of_pods() {
  local each='{.metadata.name}: {.status.phase} {.spec.nodeName} {.status.conditions[?(@.status=="False")].message}'
  # Those that are as they should be say nothing.
  k get pods -o jsonpath="{range .items[*]}$each{'\n'}{end}" | grep -v ': \(Running\|Succeeded\) [^ ]* $' | head -n 12
  each='event of {.involvedObject.name}: {.reason} {.message}'
  k get events --sort-by .metadata.creationTimestamp -o jsonpath="{range .items[*]}$each{'\n'}{end}" | tail -n 8
  each='{.metadata.name}: {range .spec.devices[*]}{.name} {.bindingConditions} {.taints}; {end}'
  k get resourceslices -o jsonpath="{range .items[*]}$each{'\n'}{end}" | sed 's/^/slice /' | head -n 4
}

# keep_state: at a failure, before anything is cleared up. With --keep, log/objects has all of it.
keep_state() {
  STATE=$(state_of_pods 2>&1 | grep . | cut -c 1-300)
  [ -z "$KEPT" ] || k get nodes,resourceslices,deviceclasses,pods,resourceclaims,events,leases -A -o yaml \
    >>"$WORK/log/objects" 2>&1
}

# run_scenario NAME
run_scenario() {
  local began=${EPOCHREALTIME/./}
  REASON='' NOTE='' STATE=''
  if ! "scenario_${1//-/_}"; then
    REASON=${REASON:-$(tail -n 1 "$WORK/last" 2>/dev/null)}
    REASON=${REASON:-a step failed and said nothing}
    [ -n "$STATE" ] || keep_state
  fi
  report "$1" $(((${EPOCHREALTIME/./} - began) / 1000))
  clear_up
}

command_k8s_check() {
  local name commit etcd
  # A scenario says why it fails at the end of a pipe.
  shopt -s lastpipe
  # shellcheck source=build/k8s-check/plane.sh
  . "$ROOT/build/k8s-check/plane.sh"
  # shellcheck source=build/k8s-check/scenarios.sh
  . "$ROOT/build/k8s-check/scenarios.sh"
  # shellcheck source=build/k8s-check/claims.sh
  . "$ROOT/build/k8s-check/claims.sh"
  # shellcheck source=build/k8s-check/scale.sh
  . "$ROOT/build/k8s-check/scale.sh"
  # shellcheck source=build/k8s-check/kills.sh
  . "$ROOT/build/k8s-check/kills.sh"
  # shellcheck source=build/k8s-check/nodes.sh
  . "$ROOT/build/k8s-check/nodes.sh"
  # shellcheck source=build/k8s-check/kubelet.sh
  . "$ROOT/build/k8s-check/kubelet.sh"
  k8s_check_options "$@"
  go_apart "$@"
  trap_ends
  require_assets
  prepare_command
  trap_ends # a build takes the traps away
  DEPLOY=$ROOT/vgpu-k8s-adapter/deploy
  mkdir -p "$WORK"/{log,run,gpus,cdi,kubelet/device-plugins,kubelet/plugins_registry} || exit 1
  chmod 700 "$WORK"
  commit=$(git -C "$ROOT" describe --always --dirty 2>/dev/null)
  etcd=$("$ASSETS/etcd" --version | sed -n 's/^etcd Version: //p')
  if [ -n "$AS_JSON" ]; then
    printf '{"commit": %s, "kubernetes": "%s", "etcd": "%s", "scenarios": [' "$(json_text "$commit")" "$KUBERNETES" \
      "$etcd"
  else
    printf 'commit %s, Kubernetes %s, etcd %s, %s processors, load %s\n\n' "${commit:-unknown}" "$KUBERNETES" "$etcd" \
      "$(nproc)" "$(cut -d ' ' -f 1 /proc/loadavg)"
  fi
  PASSED=0 FAILED=0 LATER=''
  run_scenario install
  if [ $FAILED -eq 0 ]; then
    # shellcheck disable=SC2046,SC2086 # several names
    for name in $(with_needed ${ONLY:-$SCENARIOS}); do
      case $APART:$name in *:install | :kubelet-*) continue ;; esac
      if [ "$(first_minor "$name")" -gt "$MINOR" ]; then LATER="$LATER${LATER:+ }$name"; else run_scenario "$name"; fi
    done
  fi
  if [ -n "$AS_JSON" ]; then
    printf '\n], "role_restarts": %s, "missing_for_kubelet": %s, ' $RESTARTS "$(json_text "$MISSING")"
    printf '"for_later_versions": %s}\n' "$(json_text "$LATER")"
  else
    [ -z "$MISSING" ] || printf '\nleft out: the scenarios kubelet-*, for want of %s\n' "$MISSING"
    [ -z "$LATER" ] || printf '\nleft out, for later versions of Kubernetes: %s\n' "$LATER"
    printf '\n%s passed, %s failed\n' $PASSED $FAILED
  fi
  [ $FAILED -eq 0 ]
  exit $?
}
