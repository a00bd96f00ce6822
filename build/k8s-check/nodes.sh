# shellcheck shell=bash
# Sourced by build/k8s-check.sh: further nodes with a kubelet, and kills of the node role on one node or on several.
#
# A further node has a mount namespace, an address and cgroups of its own. Its process HOLDER keeps the namespace.

declare -gA HOLDER=()
FURTHER='real-b real-c'

# on_node NODE COMMAND...: what the command starts runs on that node.
on_node() {
  local NODE=$1 NODE_DIR=$WORK/node${1#real} NODE_ROOT='' IN_NODE=()
  local NODE_ADDRESS=$SERVICE_ADDRESS NODE_SUBNET=10.97.0.0/16
  if [ "$1" != real ]; then
    IN_NODE=(nsenter "--mount=/proc/${HOLDER[$1]-}/ns/mnt") NODE_ROOT=/proc/${HOLDER[$1]-}/root
    case $1 in
      real-b) NODE_ADDRESS=10.96.1.2 NODE_SUBNET=10.98.0.0/16 ;;
      real-c) NODE_ADDRESS=10.96.1.3 NODE_SUBNET=10.99.0.0/16 ;;
    esac
  fi
  "${@:2}"
}

# hold_node: makes the directories of the further node, and the process that keeps them.
hold_node() {
  local part
  mkdir -p "$NODE_DIR"/{kubelet,vgpu,log,logs,cni,volume-plugins} || return 1
  for part in /sys/fs/cgroup/*/; do
    [ ! -d "$part$NODE_CGROUP" ] || mkdir -p "$part$NODE_CGROUP/$NODE" || return 1
  done
  [ ! -f /sys/fs/cgroup/cgroup.controllers ] || mkdir -p "/sys/fs/cgroup/$NODE_CGROUP/$NODE" || return 1
  ip address add "$NODE_ADDRESS/32" dev lo 2>/dev/null
  # shellcheck disable=SC2016 # the other shell's words
  unshare --mount --propagation private bash -c 'mount --make-rshared / &&
    mount -t tmpfs -o mode=755 vgpu-check /run && mkdir -p /run/cdi /run/vgpu /run/containerd &&
    mount --bind "$1/kubelet" /var/lib/kubelet && mount --bind "$1/vgpu" /var/lib/vgpu &&
    mount --bind "$1/log" /var/log && touch "$1/held" && exec sleep infinity' hold "$NODE_DIR" \
    </dev/null >"$WORK/log/$NODE" 2>&1 &
  HOLDER[$NODE]=$!
  until_true 10 test -e "$NODE_DIR/held" || fail "$(last_line "$NODE")"
}

# start_further NODE IMAGE...: the node joins, with these images of the node "real".
start_further() {
  local name
  on_node "$1" hold_node && on_node "$1" configure_kubelet && on_node "$1" start_containerd || return 1
  until_true 60 on_node "$1" node_ctr version || fail "$(last_line "containerd${1#real}")" || return 1
  for name in "${@:2}"; do
    until_true 60 copy_image "$1" "$name" || fail "$(cat "$WORK/last")" || return 1
    rm -f "$WORK/image.tar"
  done
  on_node "$1" start_kubelet
  until_true 90 is_ready "$1" || fail "$1 is not ready: $(last_line "kubelet${1#real}")" || return 1
  k taint nodes "$1" node.kubernetes.io/not-ready:NoSchedule- >"$WORK/last" 2>&1 || return 0
}

# copy_image NODE IMAGE: once, an export on a busy machine ended in the middle of a file and said that all was well.
copy_image() {
  on_node real node_ctr -n k8s.io images export "$WORK/image.tar" "$2" &&
    on_node "$1" node_ctr -n k8s.io images import --local "$WORK/image.tar"
}

# node_ctr ARGUMENT...: containerd's command on the node.
node_ctr() {
  "${IN_NODE[@]}" "$ASSETS/ctr" -a /run/containerd/containerd.sock "$@"
}

is_ready() {
  [ "$(field node "$1" '{.status.conditions[?(@.type=="Ready")].status}')" = True ]
}

# end_further: these nodes go.
end_further() {
  local node
  for node in $FURTHER; do
    [ -n "${HOLDER[$node]-}" ] || continue
    stop "kubelet${node#real}"
    k delete node "$node" >"$WORK/last" 2>&1
    k delete pods -A --field-selector "spec.nodeName=$node" --force --grace-period=0 --wait=false >"$WORK/last" 2>&1
    k delete resourceslice "$node-vgpu.dev" >"$WORK/last" 2>&1
    end_holder "$node"
    stop "containerd${node#real}" KILL
  done
}

# end_holder NODE: its containers end, their shims, and the process that kept its directories.
end_holder() {
  local i pids
  for ((i = 0; i < 50; i++)); do
    pids=$(
      find /sys/fs/cgroup -path "*/$NODE_CGROUP/$1/*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u
      pgrep -f "^$ASSETS/containerd-shim-runc-v2 .* -address /run/containerd/" --ns "${HOLDER[$1]}" --nslist mnt
    )
    [ -n "$pids" ] || break
    # shellcheck disable=SC2086 # a list of numbers
    kill -KILL $pids 2>/dev/null
    sleep 0.1
  done
  kill -KILL "${HOLDER[$1]}" 2>/dev/null
  wait "${HOLDER[$1]}" 2>/dev/null
  unset "HOLDER[$1]"
}

# Three nodes with a kubelet: the DaemonSet's pod comes to each, a gang takes the GPUs of all, and waits as long as one
# node's role is away. Then the roles are killed, all three in each round.
scenario_kubelet_nodes() {
  local node failed=1
  for node in $FURTHER; do start_further "$node" docker.io/library/debian:bookworm-slim $VGPU_IMAGE || return 1; done
  gang_over_kubelets && clear_up && kills_of_node_roles real $FURTHER && failed=0
  end_further
  return $failed
}

has_slices() {
  local node
  for node in real $FURTHER; do
    has gpu- field resourceslice "$node-vgpu.dev" '{.spec.devices[*].name}' || return 1
  done
}

gang_over_kubelets() {
  local failed=1 said
  until_true 120 has_slices || fail "not every node has a slice: $(k get pods -n vgpu-system -o wide 2>&1)" || return 1
  gang_claims_on_real && wide_gang_over_kubelets && failed=0
  said=$REASON
  gang_claims_off_real || failed=1
  REASON=$said
  return $failed
}

all_wait_for_gangs() {
  local node
  for node in real $FURTHER; do
    has gang-complete field resourceslice "$node-vgpu.dev" '{.spec.devices[*].bindingConditions}' || return 1
  done
}

wide_gang_over_kubelets() {
  local i names=''
  for ((i = 1; i <= 6; i++)); do names="$names wide-$i"; done
  # The DaemonSet changes its pods one after another, and the kubelet asks every 20 s whether one is ready.
  until_true 300 all_wait_for_gangs || fail "a slice has no conditions" || return 1
  # Six whole GPUs are all that there are; one of them is in use at first.
  { timed first 60 600; } | make && runs 60 first || return 1
  for ((i = 1; i <= 6; i++)); do
    claim "wide-$i" 'share: 100, memory: 1Gi'
    user "wide-$i" "wide-$i" 'vgpu.dev/gang: wide, vgpu.dev/gang-size: "6"' |
      sed -e 's|^spec:|&\n  restartPolicy: Never|' \
        -e 's|image: none|image: debian:bookworm-slim, command: [spin, --seconds, "1", --json]|'
  done | make || return 1
  until_true 60 has 'cannot allocate all claims' waiting_text || fail "nobody waits: $(waiting_text)" || return 1
  [ -z "$(k get pods -o jsonpath='{.items[?(@.spec.nodeName)].metadata.name}' | grep wide)" ] ||
    fail "a part of a gang is bound: $(waiting_text)" || return 1
  k delete pod first --grace-period=1 --wait=false >/dev/null
  # shellcheck disable=SC2086 # several names
  bound 90 $names && ended 90 $names || return 1
  # shellcheck disable=SC2086 # several names
  [ "$(nodes_of $names)" = "real real-b real-c " ] || fail "they ran on $(nodes_of $names)" || return 1
  k delete pods --all --grace-period=1 --wait=false >/dev/null
  until_true 60 nothing_runs || fail "pods stay: $(waiting_text)"
}

HELD=/var/lib/kubelet/plugins/vgpu.dev/held

# The pods that there are, each with a claim of its name, and their nodes.
declare -A LIVES=()
# How many each node has.
PODS=4
# The nodes whose roles are killed.
ROLES=()

# come NUMBER: so many pods for the node, each with a quarter of a GPU.
come() {
  local i name
  for ((i = 0; i < $1; i++)); do
    name=pod-$((++NUMBER))
    LIVES[$name]=$NODE
    claim $name 'share: 25, memory: 1Gi'
    # A container that starts while the role is dead fails, and the kubelet starts it again. It ends as soon as it is
    # told to.
    program $name $name sh -c 'trap exit TERM; sleep 100000 \& wait' |
      sed "s|restartPolicy: Never|restartPolicy: Always\n  nodeSelector: {kubernetes.io/hostname: $NODE}|"
  done
}

# go NUMBER: names so many random pods of the node.
go() {
  local i names=() name
  for name in "${!LIVES[@]}"; do [ "${LIVES[$name]}" != "$NODE" ] || names+=("$name"); done
  for ((i = 0; i < $1; i++)); do
    name=${names[$((RANDOM % ${#names[@]}))]}
    while [ -z "${LIVES[$name]-}" ]; do name=${names[$((RANDOM % ${#names[@]}))]}; done
    unset "LIVES[$name]"
    echo "$name"
  done
}

# ids: the virtual GPUs that the node's run directory has, in order.
ids() {
  find "$WORK/run-kills-$NODE/leases" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort
}

# named: those that the node's containers were given.
named() {
  cat "$NODE_ROOT"/run/cdi/vgpu.dev-*.json 2>/dev/null | grep -o 'VGPU_LEASE=[^"]*' | cut -d = -f 2 | sort
}

# taken: how many are recorded as taken; and nothing else is recorded.
taken() {
  local files
  files=$(find "$NODE_ROOT$HELD" -type f)
  [ -z "$files" ] || [ "$(grep -l '"stage":"TAKEN"' "$NODE_ROOT$HELD"/* | wc -l)" = "$(wc -l <<<"$files")" ] || return 1
  find "$NODE_ROOT$HELD" -type f | wc -l
}

# Says which of the node's GPUs has more than all of it. It starts no program, since it is asked again and again.
overfull() {
  local file key value gpu
  local -A sum=()
  for file in "$WORK/run-kills-$NODE"/leases/*/lease.properties; do
    gpu='' value=''
    local share=0
    while IFS='=' read -r key value; do
      case $key in gpu) gpu=$value ;; request.percent) share=$value ;; esac
    done <"$file"
    [ -z "$gpu" ] || sum[$gpu]=$((${sum[$gpu]-0} + share))
  done 2>/dev/null
  for gpu in "${!sum[@]}"; do
    [ "${sum[$gpu]}" -le 100 ] || echo "$gpu of $NODE has ${sum[$gpu]}%"
  done
}

# each_role COMMAND...: on each of the nodes; fails as soon as it does.
each_role() {
  local node
  for node in "${ROLES[@]}"; do on_node "$node" "$@" || return 1; done
}

# has_virtual_gpus NUMBER: the node has so many, each in use by one container that was told of it.
has_virtual_gpus() {
  local there held
  TWICE=$TWICE$(overfull)
  # A quick look first.
  there=("$WORK/run-kills-$NODE"/leases/*/) held=("$NODE_ROOT$HELD"/*)
  [ "$1" = 0 ] || [ "${#there[@]}.${#held[@]}" = "$1.$1" ] || return 1
  [ "$(ids | wc -l)" = "$1" ] && [ "$(ids)" = "$(named)" ] && [ "$(taken)" = "$1" ]
}

# as_wanted: the pods that are to be there run, their containers too, and each has one virtual GPU; there are no others.
as_wanted() {
  local wanted
  local name
  local each='{.metadata.name} {.status.phase} {.spec.nodeName} {.status.containerStatuses[*].ready}'
  wanted=$(for name in "${!LIVES[@]}"; do echo "$name Running ${LIVES[$name]} true"; done | sort)
  each_role has_virtual_gpus $PODS &&
    [ "$(k get pods -o jsonpath="{range .items[*]}$each{'\n'}{end}" | sort)" = "$wanted" ]
}

not_as_wanted() {
  local each='{.metadata.name} {.status.phase} ready={.status.containerStatuses[*].ready}'
  echo "pods: $(k get pods -o jsonpath="{range .items[*]}$each, {end}")"
  each_role not_as_wanted_here
}

not_as_wanted_here() {
  echo "$NODE has virtual GPUs: $(ids | wc -l), named: $(named | wc -l), taken: $(taken) $(last_line "vgpu-node-$NODE")"
}

# after_changes NUMBER: waits until so many files were made or removed in which the role keeps what it takes and gives.
after_changes() {
  local left=$1 end=$((SECONDS + 6)) before='' now=()
  while [ "$left" -gt 0 ] && [ $SECONDS -lt $end ]; do
    now=("$NODE_ROOT$HELD"/* "$NODE_ROOT"/run/cdi/vgpu*)
    [ -z "$before" ] || [ "${now[*]}" = "$before" ] || left=$((left - 1))
    before=${now[*]}
    sleep 0.001
  done
}

# kill_here FILE random_time|after_changes NUMBER: kills the node's role at that moment. The file tells whether a
# virtual GPU was being taken or given back, and what was given twice.
kill_here() {
  local pid=${PID[vgpu-node-$NODE]}
  "${@:2}"
  kill -KILL "$pid"
  # A process that has ended has no words.
  while read -r -d '' _ <"/proc/$pid/cmdline"; do sleep 0.002; done 2>/dev/null
  {
    if ! taken || [ "$(taken)" != "$(find "$NODE_ROOT/run/cdi" -name 'vgpu.dev-*.json' | wc -l)" ]; then echo amid; fi
    overfull | sed 's/^/twice /'
  } >"$1"
}

# registrations: how often the kubelet has registered the node's driver.
registrations() {
  grep -c 'the kubelet has registered the DRA driver' "$WORK/log/vgpu-node-$NODE"
}

remember_registrations() {
  REGISTERED[$NODE]=$(registrations)
}

is_registered() {
  [ "$(registrations)" -gt "${REGISTERED[$NODE]}" ]
}

declare -A REGISTERED=()

# wait_as_wanted: the kubelet waits for up to 15 s before it asks a role again that did not answer. It asks at once for
# pods that have changed.
wait_as_wanted() {
  local i
  until_true 60 each_role is_registered || fail "a kubelet registers no driver: $(not_as_wanted)" || return 1
  for ((i = 0; i < 60; i++)); do
    k annotate pods --all --overwrite check/round="$ROUND-$i" >/dev/null 2>&1
    ! until_true 2 as_wanted || return 0
  done
  fail "$(not_as_wanted)"
}

# kill_soon: kills the node's role at a random moment, in the background.
kill_soon() {
  rm -f "$WORK/killed-$NODE"
  if [ $((RANDOM % 4)) = 0 ]; then
    kill_here "$WORK/killed-$NODE" random_time 4000 &
  else
    kill_here "$WORK/killed-$NODE" after_changes $((RANDOM % 12 + 1)) &
  fi
  KILLERS+=($!)
}

# start_node_roles: of the nodes whose roles do not run.
start_node_role_of() {
  local GPUS=devices=2,memory=8GiB GPUS_NAME=kills-$NODE name=vgpu-node-$NODE
  ROLE[$name]="on_node $NODE start_node_role_of"
  role "$name" "${IN_NODE[@]}" "$ROOT/vgpu-k8s-adapter/target/image/bin/vgpu-k8s" node --slots 4 --metrics-port 0 \
    --node-name "$NODE"
}

# Pods of each node go and others come. The node roles are killed meanwhile.
kill_the_node_roles() {
  local jobs=() KILLERS=() node
  each_role go 2 >"$WORK/gone"
  each_role come 2 >"$WORK/come"
  # shellcheck disable=SC2046 # several names
  k delete $(sed 's|.*|pod/& resourceclaim/&|' "$WORK/gone") --grace-period=1 --wait=false >"$WORK/deleted" 2>&1 &
  jobs+=($!)
  k create -f "$WORK/come" >"$WORK/created" 2>&1 &
  jobs+=($!)
  each_role kill_soon
  wait "${KILLERS[@]}" 2>/dev/null
  for node in "${ROLES[@]}"; do wait "${PID[vgpu-node-$node]}" 2>/dev/null; done
  lap kill
  TWICE=''
  for node in "${ROLES[@]}"; do
    DEATHS=$((DEATHS + 1))
    ! grep -q amid "$WORK/killed-$node" || AMID=$((AMID + 1))
    TWICE=$TWICE$(grep twice "$WORK/killed-$node")
  done
  wait "${jobs[@]}" || fail "$(cat "$WORK/deleted" "$WORK/created")" || return 1
  each_role remember_registrations
  each_role start_node_role_of
  lap between
  wait_as_wanted || return 1
  lap as-wanted
  [ -z "$TWICE" ] || fail "given twice: $TWICE" || return 1
  NOTE="seed $SEED, $DEATHS kills, $AMID of them while a virtual GPU was being taken or given back"
}

no_node_pods() {
  [ -z "$(k get pods -n vgpu-system -l app.kubernetes.io/name=vgpu-node -o name)" ]
}

# node_selector JSON: of the DaemonSet.
node_selector() {
  k patch daemonset vgpu-node -n vgpu-system --type merge \
    -p "{\"spec\": {\"template\": {\"spec\": {\"nodeSelector\": $1}}}}" >/dev/null
}

# pod_of_role: the node's role as a pod, whose account the role has.
pod_of_role() {
  local token
  pod_of_the_daemon_set | sed -e "s/dra/$NODE/g" -e 's/image: none/&, imagePullPolicy: Never/' | k create -f - \
    >"$WORK/last" 2>&1 && token=$(k create token vgpu-node --namespace vgpu-system --duration 4h \
    --bound-object-kind Pod --bound-object-name "vgpu-node-$NODE") && kubeconfig "vgpu-node-$NODE" "$token"
}

# end_role: the node's role ends, and its pod. The DaemonSet's role has other GPUs, and writes the slice anew.
end_role() {
  stop "vgpu-node-$NODE"
  unset "JVM[vgpu-node-$NODE]"
  k delete pod "vgpu-node-$NODE" -n vgpu-system --force --grace-period=0 >"$WORK/last" 2>&1
  k delete resourceslice "$NODE-vgpu.dev" >"$WORK/last" 2>&1
  return 0
}

# look_soon: the node's kubelet looks at its pods after two seconds, not after a minute. It starts a container that
# failed after a second, not after ten and more.
look_soon() {
  stop "kubelet${NODE#real}"
  printf '%s\n' 'syncFrequency: 2s' 'crashLoopBackOff: {maxContainerRestartPeriod: 1s}' >>"$NODE_DIR/kubelet.yaml"
  start_kubelet
}

# kills_of_node_roles NODE...: the node roles are processes of this script, which starts them again at once. A kubelet
# would wait longer after each kill.
kills_of_node_roles() {
  local failed=1
  NUMBER=0 AMID=0 DEATHS=0 TWICE='' LIVES=() GANG_CLAIMS='' ROLES=("$@")
  node_selector '{"none": "such"}' && until_true 60 no_node_pods || fail "the DaemonSet's pod stays" || return 1
  each_role look_soon
  each_role pod_of_role && rounds_of_node_roles && failed=0
  each_role end_role
  node_selector null
  [ $failed = 1 ] || until_true 180 each_role has_slice || fail "no slice: $(last_line kubelet)"
  return $failed
}

has_slice() {
  has gpu- field resourceslice "$NODE-vgpu.dev" '{.spec.devices[*].name}'
}

scenario_kubelet_kills() {
  kills_of_node_roles real
}

archive_role() {
  JVM[vgpu-node-$NODE]=-XX:ArchiveClassesAtExit=$WORK/vgpu-node-$NODE.jsa
  start_node_role_of
}

start_from_archive() {
  archive_classes "vgpu-node-$NODE"
}

rounds_of_node_roles() {
  each_role archive_role
  each_role come $PODS >"$WORK/come"
  make <"$WORK/come" || return 1
  until_true 120 as_wanted || fail "$(not_as_wanted)" || return 1
  each_role start_from_archive || return 1
  in_rounds kill_the_node_roles || return 1
  k delete pods,resourceclaims --all --grace-period=1 --wait=false >"$WORK/last" 2>&1
  until_true 60 each_role has_virtual_gpus 0 || fail "$(not_as_wanted)"
}
