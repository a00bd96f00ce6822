# shellcheck shell=bash
# Sourced by build/k8s-check.sh: the scenarios of pods whose GPUs are claims.

# claim NAME CAPACITY [PARAMETERS]: CAPACITY as 'share: 30, memory: 2Gi', PARAMETERS as 'policy: fixed-share'.
claim() {
  cat <<EOF2
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: $1}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: ${CLASS-vgpu.dev}, capacity: {requests: {$2}}}}]
EOF2
  [ $# -lt 3 ] || cat <<EOF2
    config:
      - opaque: {driver: vgpu.dev, parameters: {apiVersion: vgpu.dev/v1alpha1, kind: ShareParameters, $3}}
EOF2
}

# user NAME CLAIM [ANNOTATIONS]: a pod with a claim; ANNOTATIONS as 'vgpu.dev/gang: ring'.
user() {
  cat <<EOF2
---
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {${3-}}}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: $2}]
  containers: [{name: main, image: none, resources: {claims: [{name: gpu}]}}]
EOF2
}

# The slice is taken as it is written, and written once.
scenario_slices() {
  local version before
  before=$(field resourceslice dra-vgpu.dev '{.metadata.resourceVersion}')
  has '"share":{"requestPolicy":{"default":"100","validRange":{"max":"100","min":"1","step":"1"}},"value":"100"}' \
    field resourceslice dra-vgpu.dev '{.spec.devices[0].capacity}' ||
    fail "capacity: $(field resourceslice dra-vgpu.dev '{.spec.devices[0].capacity}')" || return 1
  [ "$(field resourceslice dra-vgpu.dev '{.spec.devices[0].allowMultipleAllocations}')" = true ] ||
    fail "the device is not to be shared" || return 1
  has dra k get resourceslice dra-vgpu.dev -o jsonpath='{.metadata.ownerReferences[0].name}' ||
    fail "the slice does not belong to its node" || return 1
  # It comes back, once, if somebody deletes it; so the role has looked at it since.
  k delete resourceslice dra-vgpu.dev >/dev/null
  until_true 40 has dra-vgpu.dev k get resourceslices || fail "deleted, it does not come back" || return 1
  version=$(field resourceslice dra-vgpu.dev '{.metadata.resourceVersion}')
  [ "$version" != "$before" ] || fail "it was not written" || return 1
  # A role that has just begun looks at it first.
  stop vgpu-node
  start_node_role
  until_true 60 grep -q 'metrics on port' "$WORK/log/vgpu-node" || fail "$(last_line vgpu-node)" || return 1
  sleep 12
  [ "$(field resourceslice dra-vgpu.dev '{.metadata.resourceVersion}')" = "$version" ] ||
    fail "it is written again without need; generation $(field resourceslice dra-vgpu.dev '{.spec.pool.generation}')"
}

scenario_claims_refused() {
  local bad
  for bad in 0 101 -5 1000; do
    claim bad "share: \"$bad\"" | refused 'share is 1 to 100 percent of one GPU'
  done
  claim bad 'share: 500m' | refused 'share is'
  claim bad 'memory: "0"' | refused 'memory is'
  claim bad 'shares: 30' | refused 'capacities share and memory'
  claim bad 'vgpu.dev/share: 30' | refused 'capacities share and memory'
  claim bad 'share: 30' 'polizy: fixed-share' | refused 'there are the parameters'
  claim bad 'share: 30' 'policy: fair' | refused 'policy is best-effort, fixed-share or burst-share'
  claim bad 'share: 30' 'policy: 5' | refused 'policy is best-effort, fixed-share or burst-share'
  claim bad 'share: 30' 'class: gold' | refused 'class is online, nearline or offline'
  claim bad 'share: 30' 'offlineFloorPercent: 101' | refused 'offlineFloorPercent is 0 to 100'
  claim bad 'share: 30' 'offlineFloorPercent: many' | refused 'offlineFloorPercent is 0 to 100'
  claim bad 'share: 30' 'require: {fault: isolated}' | refused 'require'
  claim bad 'share: 30' 'require: {faults: some}' | refused 'require'
  claim bad 'share: 30' 'policy: fixed-share' | sed 's/kind: ShareParameters/kind: Share/' |
    refused 'parameters are of apiVersion vgpu.dev/v1alpha1 and kind ShareParameters'
  claim bad 'share: 30' 'policy: fixed-share' | sed 's/apiVersion: vgpu.*kind: ShareParameters, //' |
    refused 'parameters are of apiVersion vgpu.dev/v1alpha1 and kind ShareParameters'
  claim bad 'share: 101' | sed 's/exactly: {/firstAvailable: [{name: a, /; s/}}}}]/}}}]}]/' | refused 'share is'
  CLASS=online.vgpu.dev claim bad 'share: 101' | refused 'share is'
  claim bad 'share: 50' | sed 's/exactly: {/&count: 2, /' | refused 'distinctAttribute: vgpu.dev/uuid'
  claim bad 'share: 60' | sed 's/exactly: {/&count: 9, /' | refused 'at most 8 GPUs'
  sed -e 's/share: "30"/share: "101"/' "$DEPLOY/two-pods.yaml" | refused 'share is'
  sed -e 's/name: .*vgpu.dev/&.bad/; s/class: online/class: gold/' "$DEPLOY/base/device-class.yaml" |
    refused 'class is online, nearline or offline'
  [ -z "$REASON" ] || return 1
  claim good 'share: 30, memory: 2Gi' \
    'policy: burst-share, class: online, offlineFloorPercent: 10, require: {faults: none, compute: turns}' |
    make || return 1
  claim whole '' | make || return 1
  claim two-large 'share: 51' | sed 's/exactly: {/&count: 2, /' | make || return 1
  { claim two 'share: 50' && printf '    constraints: [{distinctAttribute: vgpu.dev/uuid}]\n'; } |
    sed 's/exactly: {/&count: 2, /' | make
}

shares_of() {
  local each='.status.allocation.devices.results[0].consumedCapacity'
  k get resourceclaims -o jsonpath="{range .items[*]}{$each.share} {$each.memory}; {end}"
}

# The published example runs; a third pod waits, and comes when there is room.
scenario_claims_shared() {
  k create -f "$DEPLOY/two-pods.yaml" >/dev/null || fail "two-pods.yaml is refused" || return 1
  bound 40 one two || return 1
  has '30 2Gi; 30 2Gi;' shares_of || fail "the claims hold: $(shares_of)" || return 1
  { claim half 'share: 50, memory: 2Gi' && user three half; } | make || return 1
  says three 'cannot allocate all claims' || return 1
  k delete pod one --force --grace-period=0 >/dev/null 2>&1
  bound 40 three
}

# More memory than the card has: the pod waits.
scenario_claims_memory() {
  { claim big 'share: 10, memory: 9Gi' && user big big; } | make || return 1
  says big 'cannot allocate all claims' || return 1
  { claim most 'share: 10, memory: 7Gi' && user most most; } | make || return 1
  bound 40 most || return 1
  { claim more 'share: 10, memory: 2Gi' && user more more; } | make || return 1
  says more 'cannot allocate all claims'
}

# A class's parameters and a selector reach the claim's allocation.
scenario_claims_class() {
  local expression="device.attributes[\"vgpu.dev\"].model == \"Emulated GPU\"" told
  { CLASS=online.vgpu.dev claim fast 'share: 20, memory: 1Gi' 'policy: fixed-share' |
    sed "s/deviceClassName:/selectors: [{cel: {expression: '$expression'}}], &/" && user fast fast; } | make || return 1
  bound 40 fast || return 1
  told=$(field resourceclaim fast '{.status.allocation.devices.config[*].opaque.parameters}')
  case $told in
    *'"class":"online"'*'"policy":"fixed-share"'*) ;;
    *) fail "the allocation's parameters: $told" ;;
  esac
}

# part NAME PROFILE GPU [PARAMETERS]: a claim for a part of that GPU in MIG mode, and its pod of the same name.
part() {
  local ours='device.attributes["vgpu.dev"]'
  CLASS=mig.vgpu.dev claim "$1" '' "${@:4}" |
    sed "s/deviceClassName:/selectors: [{cel: {expression: '$ours.profile == \"$2\" \&\& $ours.uuid == \"$3\"'}}], &/"
  user "$1" "$1"
}

# device_of CLAIM: what it got, without the GPU's name.
device_of() {
  field resourceclaim "$1" '{.status.allocation.devices.results[*].device}' | sed 's/gpu-.*-mig/mig/'
}

gpus_of_parts() {
  field resourceslice dra-vgpu.dev-2 '{.spec.devices[*].attributes.parentUUID.string}' | tr ' ' '\n' | sort -u
}

has_two_divided_gpus() {
  [ "$(gpus_of_parts | grep -c GPU-)" = 2 ] && no_shared_gpu
}

no_shared_gpu() {
  [ -z "$(field resourceslice dra-vgpu.dev '{.spec.devices[*].name}')" ]
}

has_shared_gpu() {
  ! no_shared_gpu
}

# Two GPUs whose MIG mode is on: their parts are devices, and kube-scheduler allocates no two that overlap.
scenario_claims_mig() {
  local failed=1 said
  GPUS=devices=2,memory=40GiB,mig=on GPUS_NAME=mig
  stop vgpu-node
  start_node_role
  if until_true 60 has_two_divided_gpus; then
    parts_of_gpus && failed=0
  else
    fail "no parts of two GPUs: $(k get resourceslices -o name | tr '\n' ' '), $(last_line vgpu-node)"
  fi
  said=$REASON
  clear_up
  GPUS='' GPUS_NAME=''
  stop vgpu-node
  start_node_role
  REASON=''
  until_true 60 has_shared_gpu || fail "the node role's own GPU does not come back: $(last_line vgpu-node)" || failed=1
  REASON=${said:-$REASON}
  return $failed
}

parts_of_gpus() {
  local one other each
  one=$(gpus_of_parts | sed -n 1p) other=$(gpus_of_parts | sed -n 2p)
  for each in 'policy: fixed-share' 'class: online' 'offlineFloorPercent: 10'; do
    part bad 3g.20gb "$one" "$each" | refused 'are for shared GPUs, not for parts'
  done
  CLASS=mig.vgpu.dev claim bad 'share: 30' | refused 'names memory and multiprocessors, and no share'
  part bad 3g.20gb "$one" | sed 's/exactly: {/&count: 2, /' | refused 'has no count'
  [ -z "$REASON" ] || return 1
  part good 3g.20gb "$one" 'require: {faults: isolated}' | k create --dry-run=server -f - >"$WORK/last" 2>&1 || return 1

  # Nobody gets a share of such a GPU.
  { claim shared 'share: 10, memory: 1Gi' && user shared shared; } | make && says shared 'cannot allocate all claims' ||
    return 1
  # Two halves, of which the first one lies where it leaves room for 4g; a third one waits.
  part three-a 3g.20gb "$one" | make && bound 40 three-a || return 1
  [ "$(device_of three-a)" = mig-3g-20gb-4 ] || fail "three-a has $(device_of three-a)" || return 1
  part three-b 3g.20gb "$one" | make && bound 40 three-b || return 1
  [ "$(device_of three-b)" = mig-3g-20gb-0 ] || fail "three-b has $(device_of three-b)" || return 1
  part three-c 3g.20gb "$one" | make && says three-c 'cannot allocate all claims' || return 1
  # 4g and 3g fill the other GPU.
  { part four 4g.20gb "$other" && part three 3g.20gb "$other"; } | make && bound 40 four three || return 1
  part small 1g.5gb "$other" | make && says small 'cannot allocate all claims' || return 1
  # When a half is free, the one that waits gets it.
  k delete pod three-b --force --grace-period=0 >/dev/null 2>&1
  bound 40 three-c || return 1
  [ "$(device_of three-c)" = mig-3g-20gb-0 ] || fail "three-c has $(device_of three-c)" || return 1
  # A claim that names the memory gets the smallest part that has so much.
  k delete pod four --force --grace-period=0 >/dev/null 2>&1
  bound 40 small || return 1
  { CLASS=mig.vgpu.dev claim memory 'memory: 6Gi' && user memory memory; } | make && bound 40 memory || return 1
  case $(device_of memory) in mig-1g-10gb-*) ;; *) fail "memory has $(device_of memory)" || return 1 ;; esac
  may_all
}

# emulate LINE: NVML's readings of the emulated GPU are so from now on.
emulate() {
  echo "$1" >"$WORK/gpus/nvml.new" && mv "$WORK/gpus/nvml.new" "$WORK/gpus/nvml"
}

taints() {
  echo "taints: $(field resourceslice dra-vgpu.dev '{.spec.devices[*].taints}')"
}

no_taints() {
  [ "$(taints)" = 'taints: ' ]
}

# A lost GPU is tainted, its pods go, and nobody gets it until it is back.
scenario_gpu_lost() {
  { claim lent 'share: 20, memory: 1Gi' && user lent lent; } | make && bound 40 lent || return 1
  emulate lost=1
  until_true 60 has '"value":"lost"' taints || fail "a lost GPU has $(taints)" || return 1
  until_true 60 is_gone lent || fail "its pod stays" || return 1
  { claim late 'share: 20, memory: 1Gi' && user late late; } | make && says late 'cannot allocate' || return 1
  emulate lost=0
  until_true 60 no_taints || fail "a GPU that is back has $(taints)" || return 1
  bound 60 late
}

# conditions STATE: both roles run with --gang-claims (on) or without it (off), and the node's slice says so.
conditions() {
  GANG_CLAIMS=''
  [ "$1" = off ] || GANG_CLAIMS=--gang-claims
  stop vgpu-node
  stop vgpu-scheduler
  start_node_role
  start_extender
  until_true 90 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  until_true 60 slice_is "$1" || fail "the slice has the conditions $(conditions_of_slice)"
}

conditions_of_slice() {
  field resourceslice dra-vgpu.dev '{.spec.devices[*].bindingConditions}'
}

slice_is() {
  case $1:$(conditions_of_slice) in off: | on:*vgpu.dev/gang-complete*) ;; *) return 1 ;; esac
}

scenario_gang_claims() {
  with_gang_claims both_ways_of_gangs
}

both_ways_of_gangs() {
  gangs_with_claims && clear_up && gangs_in_turns && may_all
}

# with_gang_claims COMMAND: runs it while deploy/gang-claims is installed and both roles run with --gang-claims.
with_gang_claims() {
  local said failed=1
  said=$(k apply --validate=strict -k "$DEPLOY/gang-claims" 2>&1) || fail "$said" || return 1
  conditions on && "$1" && failed=0
  said=$REASON
  HOLD=''
  stop vgpu-scheduler # it would write what is cleared up
  k delete clusterrole,clusterrolebinding vgpu-gang-claims >"$WORK/last" 2>&1
  clear_up
  REASON=''
  conditions off || failed=1
  REASON=${said:-$REASON}
  return $failed
}

# The roles are refused nothing that they do.
may_all() {
  ! grep -h -i -m 1 -e forbidden -e unauthorized "$WORK/log/vgpu-node" "$WORK/log/vgpu-scheduler" >"$WORK/last" ||
    fail "$(cut -c 1-300 "$WORK/last")"
}

# member GANG NUMBER SHARE: a pod of a gang of two with its claim, and both have the name GANG-NUMBER.
member() {
  claim "$1-$2" "share: $3, memory: 1Gi"
  user "$1-$2" "$1-$2" "vgpu.dev/gang: $1, vgpu.dev/gang-size: \"2\""
}

# has_device CLAIM: kube-scheduler has allocated a device of node dra to it.
has_device() {
  [ "$(field resourceclaim "$1" '{.status.allocation.devices.results[0].pool}')" = dra ]
}

condition_of() {
  field resourceclaim "$1" '{range .status.devices[*].conditions[*]}{.type}={.status} {.reason}; {end}'
}

events_of() {
  k get events --field-selector "involvedObject.name=$1" -o jsonpath='{.items[*].message}'
}

# told POD TEXT: an event of the pod says TEXT.
told() {
  has "$2" events_of "$1"
}

gangs_with_claims() {
  local each
  { claim single 'share: 10, memory: 1Gi' && user single single; } | make && bound 60 single || return 1
  has 'vgpu.dev/gang-complete=True GangComplete' condition_of single ||
    fail "a claim without a gang has: $(condition_of single)" || return 1

  # Half of a gang has its device and waits, while a pod that came later is bound.
  member ring 1 20 | make || return 1
  until_true 60 has_device ring-1 || fail "ring-1 has no device: $(waiting_text)" || return 1
  { claim later 'share: 10, memory: 1Gi' && user later later; } | make && bound 60 later || return 1
  ! is_bound ring-1 || fail "ring-1 is bound before its gang is complete" || return 1
  member ring 2 20 | make && bound 60 ring-1 ring-2 || return 1
  for each in ring-1 ring-2; do
    has 'vgpu.dev/gang-complete=True GangComplete' condition_of "$each" ||
      fail "$each has: $(condition_of "$each")" || return 1
  done

  # A gang that stays incomplete gives its device back, and starts over.
  member half 1 20 | make || return 1
  until_true 90 told half-1 'reason=GangIncomplete' || fail "half-1 does not start over: $(waiting_text)" || return 1
  told half-1 'gang default/half: 1 of 2 pods have their claims, and its time is over' ||
    fail "half-1 is told: $(events_of half-1)" || return 1
  ! is_bound half-1 || fail "half-1 is bound without its gang" || return 1
  member half 2 20 | make && bound 90 half-1 half-2
}

# Two gangs that each hold a half of what there is: the younger gives its device back long before its time is over.
gangs_in_turns() {
  member elder 1 50 | make || return 1
  until_true 60 has_device elder-1 || fail "elder-1 has no device: $(waiting_text)" || return 1
  # Of gangs that are born in the same second, the first name is the elder one.
  member younger 1 50 | make || return 1
  until_true 60 has_device younger-1 || fail "younger-1 has no device: $(waiting_text)" || return 1
  { member younger 2 50 && member elder 2 50; } | make || return 1
  bound 120 elder-1 elder-2 || return 1
  told younger-1 'no GPUs have room for the others now' || fail "younger-1 is told: $(events_of younger-1)" || return 1
  ! told elder-1 'GangIncomplete' || fail "elder-1 had to give its device back" || return 1
  k delete pod elder-1 elder-2 --force --grace-period=0 >/dev/null 2>&1
  k delete resourceclaim elder-1 elder-2 --wait=false >/dev/null 2>&1
  bound 120 younger-1 younger-2
}

# start_second_role: the node role of node "dra-b", whose GPU is another one.
start_second_role() {
  ROLE[vgpu-node-b]=start_second_role
  role vgpu-node-b env VGPU_RUN_DIR="$WORK/b/run" VGPU_EMULATOR_DIR="$WORK/b/gpus" \
    "$ROOT/vgpu-k8s-adapter/target/image/bin/vgpu-k8s" node --node-name dra-b --kubelet "$WORK/b/kubelet" \
    --cdi "$WORK/b/cdi" --metrics-port 0 --gang-claims
}

# Two nodes with a node role and one GPU each: a gang that needs both, with claims from a template.
scenario_gang_nodes() {
  local failed=1 token
  mkdir -p "$WORK"/b/{run,gpus,cdi,kubelet/device-plugins,kubelet/plugins_registry}
  node dra-b | make_nodes || return 1
  pod_of_the_daemon_set | sed 's/dra/dra-b/g' | k create -f - >"$WORK/last" 2>&1 || return 1
  token=$(k create token vgpu-node --namespace vgpu-system --bound-object-kind Pod \
    --bound-object-name vgpu-node-dra-b) && kubeconfig vgpu-node-b "$token" || return 1
  with_gang_claims gang_over_two_nodes && failed=0
  stop vgpu-node-b
  k delete node dra-b >"$WORK/last" 2>&1
  k delete resourceslice dra-b-vgpu.dev >"$WORK/last" 2>&1
  k delete pod vgpu-node-dra-b -n vgpu-system --force --grace-period=0 >"$WORK/last" 2>&1
  return $failed
}

# wide_gang NAME: two pods, each with a whole GPU by a claim of the template.
wide_gang() {
  local i
  for i in 1 2; do
    user "$1-$i" '' "vgpu.dev/gang: $1, vgpu.dev/gang-size: \"2\"" |
      sed 's/resourceClaimName: /resourceClaimTemplateName: whole/'
  done
}

# a_pod_has_a_device GANG
a_pod_has_a_device() {
  has "$1" k get resourceclaims -o \
    jsonpath='{range .items[?(@.status.allocation.devices)]}{.status.reservedFor[0].name} {end}'
}

nodes_of() {
  k get pods "$@" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | tr '\n' ' '
}

gang_over_two_nodes() {
  start_second_role
  until_true 60 has gang-complete field resourceslice dra-b-vgpu.dev '{.spec.devices[*].bindingConditions}' ||
    fail "$(last_line vgpu-node-b)" || return 1
  claim whole 'share: 100' | sed -e 's/kind: ResourceClaim/&Template/' -e 's/^spec:/&\n  spec:/' \
    -e '/^  devices/,$s/^/  /' | make || return 1
  wide_gang one | make && bound 60 one-1 one-2 || return 1
  [ "$(nodes_of one-1 one-2)" = 'dra dra-b ' ] || fail "they are on $(nodes_of one-1 one-2)" || return 1
  wide_gang two | make && says two-1 'cannot allocate all claims' || return 1
  # One GPU is not enough, though a pod gets it.
  k delete pod one-1 --force --grace-period=0 >/dev/null 2>&1
  until_true 60 a_pod_has_a_device two || fail "nobody gets the GPU: $(waiting_text)" || return 1
  ! is_bound two-1 && ! is_bound two-2 || fail "a part of a gang is bound: $(waiting_text)" || return 1
  k delete pod one-2 --force --grace-period=0 >/dev/null 2>&1
  bound 90 two-1 two-2 || return 1
  [ "$(nodes_of two-1 two-2)" = 'dra dra-b ' ] || fail "they are on $(nodes_of two-1 two-2)"
}
