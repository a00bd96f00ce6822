# shellcheck shell=bash
# Sourced by build/k8s-check.sh: what is checked. A scenario is a function; it fails with a REASON.
# Those of claims are in claims.sh, those with figures in scale.sh, those of a node with a kubelet in kubelet.sh. Those
# that kill a role again and again are in kills.sh and nodes.sh, the latter with further nodes.
# Nodes: "dra" has the node role and one emulated GPU of 8 GiB. "rack-a" and "rack-b" have two GPUs each by annotation.

SCENARIOS='install slices policies claims-refused claims-shared claims-memory claims-class claims-mig gpu-lost'
SCENARIOS="$SCENARIOS node-annotation accounts node-policy slots slots-refused slots-several annotations beside gang"
SCENARIOS="$SCENARIOS gang-queue pod-group gang-claims gang-nodes eviction eviction-refused eviction-gang preemption"
SCENARIOS="$SCENARIOS names extender-killed kills extender-tls api-server-away show node-cost many thousand"
SCENARIOS="$SCENARIOS kubelet-daemon-set kubelet-claims kubelet-shares kubelet-prepare"
SCENARIOS="$SCENARIOS kubelet-several kubelet-killed kubelet-restarted kubelet-away kubelet-health kubelet-slots"
SCENARIOS="$SCENARIOS kubelet-scheduler kubelet-gang kubelet-kills kubelet-nodes"

# first_minor NAME: the first minor version of Kubernetes 1 that has what a scenario is about.
first_minor() {
  case $1 in
    pod-group) echo 36 ;; # scheduling.k8s.io/v1alpha2
    claims-mig) echo 36 ;; # the counters of its devices
    *-health | kubelet-kills | kubelet-nodes | kubelet-gang) echo 36 ;;
    slices | claims-* | gpu-lost | gang-claims | gang-nodes | show | thousand) echo 34 ;;
    kubelet-claims | kubelet-shares | kubelet-prepare | kubelet-several | kubelet-killed) echo 34 ;;
    kubelet-restarted | kubelet-away) echo 34 ;;
    policies | accounts | node-policy | annotations) echo 30 ;; # ValidatingAdmissionPolicy, v1
    *) echo 28 ;;
  esac
}

# fail TEXT...: why the scenario fails.
fail() {
  REASON=$*
  [ -n "$STATE" ] || keep_state
  return 1
}

# field KIND NAME JSONPATH
field() {
  k get "$1" "$2" -o jsonpath="$3"
}

# has TEXT COMMAND...: whether the command prints TEXT.
has() {
  case $("${@:2}" 2>&1) in *"$1"*) ;; *) return 1 ;; esac
}

is_bound() {
  local name
  for name in "$@"; do
    [ -n "$(field pod "$name" '{.spec.nodeName}')" ] || return 1
  done
}

# bound SECONDS POD...: waits until all have a node.
bound() {
  local time=$1
  shift
  until_true "$time" is_bound "$@" || fail "not bound in $time s: $(waiting_text)"
}

# What pods without a node say.
waiting_text() {
  k get pods -o jsonpath='{range .items[*]}{.metadata.name}={.spec.nodeName} {.status.conditions[*].message}; {end}'
}

# says POD TEXT: waits until the pod's condition says why it waits, with TEXT.
says() {
  until_true 30 has "$2" field pod "$1" '{.status.conditions[?(@.type=="PodScheduled")].message}' ||
    fail "$1 does not say '$2': $(field pod "$1" '{.spec.nodeName} {.status.conditions[*].message}')"
}

# Nothing of a scenario is left to the next one.
clear_up() {
  local kinds=pods,poddisruptionbudgets
  [ "$MINOR" -lt 34 ] || kinds=$kinds,resourceclaims,resourceclaimtemplates
  [ "$MINOR" -lt 36 ] || kinds=$kinds,podgroups
  k delete --all --force --grace-period=0 --wait=false "$kinds"
  until_true 30 nothing_left
} >"$WORK/last" 2>&1

nothing_left() {
  [ -z "$(k get "pods$([ "$MINOR" -lt 34 ] || echo ,resourceclaims)" -o name)" ]
}

# node NAME [GPU...]: a Node as its kubelet makes it.
node() {
  local name=$1 gpus='' id amounts='cpu: 64, memory: 256Gi, pods: 110'
  shift
  for id in "$@"; do gpus="$gpus${gpus:+,}{\"uuid\":\"GPU-$id\",\"model\":\"A100\",\"memory\":\"40Gi\"}"; done
  local others=aliyun.com/gpu-mem,nvidia.com/gpu,tencent.com/vcuda-core,tke.cloud.tencent.com/qgpu-memory
  [ -z "$gpus" ] || amounts="$amounts, vgpu.dev/slot: 32, ${others//,/: 320, }: 320"
  cat <<EOF2
---
apiVersion: v1
kind: Node
metadata:
  name: $name
  labels: {kubernetes.io/hostname: $name}
  annotations: {vgpu.dev/gpus: '[$gpus]', vgpu.dev/resources: '$others'}
status:
  allocatable: {$amounts}
  capacity: {$amounts}
  conditions: [{type: Ready, status: "True"}]
EOF2
}

# Creates the nodes of standard input, and takes away what a controller takes from a node that is ready.
make_nodes() {
  make || return 1
  # Those that were there before have no such taint, which is an error.
  k taint nodes "${1:---all}" node.kubernetes.io/not-ready:NoSchedule- >"$WORK/last" 2>&1 || return 0
}

# slot NAME SHARE MEMORY [ANNOTATION...]: a pod of the second way; an annotation as 'name: value'.
slot() {
  printf -- '---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  annotations:\n' "$1"
  printf '    %s\n' "vgpu.dev/share: \"$2\"" "vgpu.dev/memory: \"$3\"" "${@:4}"
  printf 'spec:\n  containers: [{name: main, image: none, resources: {limits: {vgpu.dev/slot: 1}}}]\n'
}

# gang NAME SIZE SHARE: the members NAME-1 to NAME-SIZE.
gang() {
  local i
  for ((i = 1; i <= $2; i++)); do
    slot "$1-$i" "$3" 1Gi "vgpu.dev/gang: $1" "vgpu.dev/gang-size: \"$2\""
  done
}

# make: creates what standard input says.
make() {
  local said
  said=$(k create -f - 2>&1) || fail "$said"
}

# refused TEXT: the server refuses what standard input says, with TEXT.
refused() {
  local said
  if said=$(k create --dry-run=server -f - 2>&1); then
    REASON="${REASON:+$REASON; }accepted, and should be refused with '$1'"
    return 1
  fi
  case $said in
    *"$1"*) ;;
    *)
      REASON="${REASON:+$REASON; }refused, yet not with '$1': $said"
      return 1
      ;;
  esac
}

account_exists() {
  k get serviceaccount default
}

# The pod of node "dra": its token names the node.
pod_of_the_daemon_set() {
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: vgpu-node-dra, namespace: vgpu-system}\n'
  printf 'spec: {serviceAccountName: vgpu-node, nodeName: dra, containers: [{name: node, image: none}]}\n'
}

# install_more NAME: what the directory has. Before 1.30, that is without the policies.
install_more() {
  local said
  said=$(k apply --validate=strict -k "$DEPLOY/$1" 2>&1) && return
  [ "$MINOR" -lt 30 ] && ! grep -v 'no matches for kind "ValidatingAdmissionPolicy\|^ensure CRDs are\|created$\|configured$\|unchanged$' \
    <<<"$said" || fail "$said"
}

install_base() {
  if [ "$MINOR" -ge 34 ]; then install_more emulated; else install_more slots; fi
}

scenario_install() {
  start_plane || return 1
  install_base && install_more scheduler || return 1
  { node dra && node rack-a a0 a1 && node rack-b b0 b1; } | make_nodes || return 1
  pod_of_the_daemon_set | k create -f - >"$WORK/last" 2>&1 || fail "$(cat "$WORK/last")" || return 1
  account vgpu-node vgpu-node-dra && account vgpu-scheduler || fail "a service account gets no token" || return 1
  start_scheduler
  start_extender
  start_node_role
  until_true 60 account_exists || fail "the namespace has no service account; $(last_line kube-controller-manager)" ||
    return 1
  until_true 90 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  if [ "$MINOR" -lt 34 ]; then
    until_true 90 has '"uuid"' field node dra '{.metadata.annotations.vgpu\.dev/gpus}' || fail "$(last_line vgpu-node)"
  else
    until_true 90 has dra-vgpu.dev k get resourceslices || fail "$(last_line vgpu-node)"
  fi
}

is_checked() {
  [ "$(field validatingadmissionpolicy "$1" '{.status.observedGeneration}')" = 1 ]
}

# The server finds no fault in the types of the policies' expressions.
scenario_policies() {
  local name warnings
  for name in vgpu-parameters vgpu-places; do
    until_true 30 is_checked "$name" || fail "nobody looks at the policy $name" || return 1
    warnings=$(field validatingadmissionpolicy "$name" '{.status.typeChecking.expressionWarnings}')
    [ -z "$warnings" ] || fail "$name: $warnings" || return 1
  done
}

# may ACCOUNT VERB RESOURCE [FLAG...]
may() {
  [ "$(k auth can-i "$2" "$3" "${@:4}" --as "system:serviceaccount:vgpu-system:$1" 2>/dev/null)" = yes ]
}

# The roles are never refused what they do (their logs tell), and may not do more.
scenario_accounts() {
  local each account verb resource
  for each in vgpu-node:list:secrets vgpu-node:create:pods vgpu-node:delete:pods vgpu-node:patch:pods \
    vgpu-node:delete:nodes vgpu-node:update:resourceclaims vgpu-node:delete:resourceslices vgpu-node:list:pods \
    vgpu-node:create:serviceaccounts/token vgpu-scheduler:get:secrets vgpu-scheduler:create:pods \
    vgpu-scheduler:delete:pods vgpu-scheduler:update:pods vgpu-scheduler:patch:nodes vgpu-scheduler:update:leases \
    vgpu-scheduler:create:clusterrolebindings vgpu-scheduler:impersonate:users; do
    IFS=: read -r account verb resource <<<"$each"
    ! may "$account" "$verb" "$resource" || fail "$account may $verb $resource" || return 1
  done
  may vgpu-scheduler update leases/vgpu-scheduler --namespace vgpu-system ||
    fail "vgpu-scheduler may not keep its lease" || return 1
  may_all
}

# says_no TEXT COMMAND...: the server refuses a command of the node's account, with TEXT.
says_no() {
  local said
  ! said=$(AS=$WORK/vgpu-node k "${@:2}" 2>&1) || fail "accepted: ${*:2}" || return 1
  case $said in *"$1"*) ;; *) fail "not refused with '$1': $said" ;; esac
}

# A node's account changes its own node, and there its GPUs alone.
scenario_node_policy() {
  says_no 'is of node dra, not of rack-a' annotate node rack-a vgpu.dev/gpus='[]' --overwrite || return 1
  says_no 'only the annotations vgpu.dev/gpus' label node dra any=thing || return 1
  says_no 'only the annotations vgpu.dev/gpus' annotate node dra any=thing || return 1
  says_no 'only the annotations vgpu.dev/gpus' patch node dra --type merge -p '{"spec":{"unschedulable":true}}' ||
    return 1
  slice rack-a vgpu.dev | says_no 'is of node dra, not of rack-a' create -f - || return 1
  slice dra other.dev | says_no 'slices are of the driver vgpu.dev' create -f - || return 1
  account vgpu-node || return 1
  says_no 'names no node' annotate node dra vgpu.dev/gpus='[]' --overwrite || return 1
  account vgpu-node vgpu-node-dra
}

# slice NODE DRIVER
slice() {
  printf 'apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: forged}\n'
  printf 'spec: {nodeName: %s, driver: %s, pool: {name: %s, generation: 9, resourceSliceCount: 1}, devices: []}\n' \
    "$1" "$2" "$1"
}

# The node role tells its GPUs, and again if its Node has forgotten them.
scenario_node_annotation() {
  until_true 30 has '"model":"Emulated GPU"' field node dra '{.metadata.annotations.vgpu\.dev/gpus}' ||
    fail "the node role does not tell its GPUs" || return 1
  k annotate node dra vgpu.dev/gpus- >/dev/null
  until_true 30 has '"model":"Emulated GPU"' field node dra '{.metadata.annotations.vgpu\.dev/gpus}' ||
    fail "the node role does not tell its GPUs again"
}

place_of() {
  field pod "$1" '{.metadata.annotations.vgpu\.dev/reservation}'
}

# Pods of the second way share GPUs until these are full, and the next one says why it waits.
scenario_slots() {
  local i used
  { for i in 1 2 3 4 5 6 7 8; do slot "s-$i" 50 4Gi; done; } | make || return 1
  bound 60 s-1 s-2 s-3 s-4 s-5 s-6 s-7 s-8 || return 1
  has '"share":50,"memory":"4294967296"' place_of s-1 || fail "its reservation is: $(place_of s-1)" || return 1
  used=$(for i in 1 2 3 4 5 6 7 8; do place_of "s-$i"; done | grep -o 'GPU-[ab][01]' | sort | uniq -c)
  [ "$(grep -c ' 2 ' <<<"$used")" = 4 ] || fail "not two on each GPU: $used" || return 1
  slot s-9 50 4Gi | make || return 1
  says s-9 'no room now' || return 1
  k delete pod s-3 --force --grace-period=0 >/dev/null 2>&1
  bound 60 s-9
}

# gpus_of POD: the GPUs of its reservation.
gpus_of() {
  place_of "$1" | grep -o 'GPU-[ab][01]' | sort -u | tr '\n' ' '
}

# Two slots are one virtual GPU on both GPUs of a node, or none.
scenario_slots_several() {
  { slot full-a 100 1Gi && slot two 30 4Gi | sed 's|vgpu.dev/slot: 1|vgpu.dev/slot: 2|'; } | make || return 1
  bound 60 full-a two || return 1
  case $(gpus_of two) in
    'GPU-a0 GPU-a1 ' | 'GPU-b0 GPU-b1 ') ;;
    *) fail "its GPUs are $(gpus_of two)" || return 1 ;;
  esac
  slot more 80 4Gi | sed 's|vgpu.dev/slot: 1|vgpu.dev/slot: 2|' | make && says more 'no room now' || return 1
  k delete pod two full-a --force --grace-period=0 >/dev/null 2>&1
  bound 60 more
}

# What no GPU has is refused, with what was asked and what would fit.
scenario_slots_refused() {
  slot zero 0 4Gi | make && says zero '1 to 100: asked 0' || return 1
  slot much 101 4Gi | make && says much '1 to 100: asked 101' || return 1
  slot big 10 41Gi | make && says big 'memory' || return 1
  slot odd 10 4Gi 'vgpu.dev/policy: fair' | make && says odd 'vgpu.dev/policy is fair' || return 1
  slot unit 10 4 | make && says unit 'vgpu.dev/memory counts bytes' || return 1
  slot nine 10 4Gi | sed 's|vgpu.dev/slot: 1|vgpu.dev/slot: 9|' | make && says nine 'asked gpus=9' || return 1
  # The refused do not hold up others.
  slot good 10 4Gi | make && bound 30 good
}

# Nobody but vgpu's scheduler says where a pod's GPUs are.
scenario_annotations() {
  slot forged 10 1Gi "vgpu.dev/reservation: '{}'" | refused "written by vgpu's scheduler alone" || return 1
  slot held 10 1Gi | make && bound 30 held || return 1
  ! k annotate --overwrite pod held vgpu.dev/reservation='{}' >"$WORK/last" 2>&1 ||
    fail "a reservation can be written anew" || return 1
  k label pod held any=thing >"$WORK/last" 2>&1 || fail "a bound pod cannot be labelled: $(cat "$WORK/last")"
}

# A pod waits for the one whose node it must share, and is bound after it.
scenario_beside() {
  slot web 50 4Gi 'vgpu.dev/same-node-as: db' | make && says web 'default/db, which neither runs nor waits' || return 1
  slot db 100 4Gi | make && bound 60 db web || return 1
  [ "$(field pod web '{.spec.nodeName}')" = "$(field pod db '{.spec.nodeName}')" ] ||
    fail "not on one node: $(waiting_text)"
}

# No member of a gang is bound before all can be.
scenario_gang() {
  local i
  slot busy 100 1Gi | make && bound 30 busy || return 1
  gang ring 4 100 | make || return 1
  says ring-4 'gang default/ring waits' || return 1
  for i in 1 2 3 4; do
    [ -z "$(field pod "ring-$i" '{.spec.nodeName}')" ] || fail "ring-$i has a node and not all have room" || return 1
  done
  k delete pod busy --force --grace-period=0 >/dev/null 2>&1
  bound 60 ring-1 ring-2 ring-3 ring-4
}

# Two gangs whose members come in turns: one gets all, the other nothing, and both in the end.
scenario_gang_queue() {
  local i first second
  { for i in 1 2 3; do
    for name in red blue; do slot "$name-$i" 100 1Gi "vgpu.dev/gang: $name" 'vgpu.dev/gang-size: "3"'; done
  done; } | make || return 1
  until_true 60 has ' 3' count_bound || fail "$(waiting_text)" || return 1
  first=$(k get pods --field-selector spec.nodeName!= -o name | sed -n '1s|pod/\(.*\)-.*|\1|p')
  second=red
  [ "$first" != red ] || second=blue
  is_bound "$first-1" "$first-2" "$first-3" || fail "both gangs hold a part: $(waiting_text)" || return 1
  says "$second-1" "gang default/$second waits" || return 1
  k delete pods "$first-1" "$first-2" "$first-3" --force --grace-period=0 >/dev/null 2>&1
  bound 60 "$second-1" "$second-2" "$second-3"
}

count_bound() {
  echo " $(k get pods --field-selector spec.nodeName!= -o name | grep -c .)"
}

# Kubernetes' own groups of pods say how many a gang needs.
scenario_pod_group() {
  local i
  for i in 1 2 3; do
    slot "own-$i" 100 1Gi | sed 's/^spec:/&\n  schedulingGroup: {podGroupName: own}/'
  done | make || return 1
  says own-3 'its group object is not there' || return 1
  make <<EOF2 || return 1
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: own}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
EOF2
  # kube-scheduler would ask again after five minutes.
  bound 60 own-1 own-2 own-3
}

# is_gone POD: it has gone, or is on its way.
is_gone() {
  ! k get pod "$1" || [ -n "$(field pod "$1" '{.metadata.deletionTimestamp}')" ]
}

# Offline pods go for an online one, unless a disruption budget forbids it.
scenario_eviction() {
  local i name
  # Memory is what they compete for: an offline share is what others leave.
  { for i in 1 2 3 4; do
    slot "low-$i" 100 30Gi 'vgpu.dev/class: offline' | sed "s/^  annotations:/  labels: {kept: \"yes\"}\n&/"
  done; } | make && bound 60 low-1 low-2 low-3 low-4 || return 1
  slot high 100 30Gi 'vgpu.dev/class: online' | make || return 1
  until_true 40 one_gone || fail "no offline pod was evicted: $(last_line vgpu-scheduler)" || return 1
  [ "$(k get pods -o jsonpath='{.items[?(@.metadata.deletionTimestamp)].metadata.name}' | wc -w)" -eq 1 ] ||
    fail "more went than one: $(waiting_text)" || return 1
  # What a kubelet does once a pod has ended.
  for name in $(k get pods -o jsonpath='{.items[?(@.metadata.deletionTimestamp)].metadata.name}'); do
    k delete pod "$name" --force --grace-period=0 >/dev/null 2>&1
  done
  bound 60 high
}

one_gone() {
  [ "$(k get pods -l kept=yes -o jsonpath='{range .items[*]}{.metadata.deletionTimestamp}.{end}')" != .... ]
}

# start_pods POD...: what a kubelet says; a budget does not count pods that have not begun.
start_pods() {
  local name
  for name in "$@"; do
    k patch pod "$name" --subresource status -p '{"status": {"phase": "Running",
      "conditions": [{"type": "Ready", "status": "True"}]}}' >/dev/null || return 1
  done
}

# Pods that a disruption budget keeps stay, and the one that wants their place waits.
scenario_eviction_refused() {
  local i
  make <<EOF2 || return 1
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 4, selector: {matchLabels: {kept: "yes"}}}
EOF2
  { for i in 1 2 3 4; do
    slot "low-$i" 100 30Gi 'vgpu.dev/class: offline' | sed "s/^  annotations:/  labels: {kept: \"yes\"}\n&/"
  done; } | make && bound 60 low-1 low-2 low-3 low-4 || return 1
  start_pods low-1 low-2 low-3 low-4 || return 1
  until_true 30 has 4 field poddisruptionbudget keep '{.status.currentHealthy}' || fail "the budget counts nobody" ||
    return 1
  slot high 100 30Gi 'vgpu.dev/class: online' | make || return 1
  until_true 40 grep -q 'eviction for default/high was refused' "$WORK/log/vgpu-scheduler" ||
    fail "nobody was to be evicted: $(waiting_text)" || return 1
  says high 'waits: no room now' || return 1
  ! one_gone || fail "an offline pod was evicted: $(waiting_text)" || return 1
  is_bound low-1 low-2 low-3 low-4
}

leaving() {
  k get pods -o jsonpath='{.items[?(@.metadata.deletionTimestamp)].metadata.name}'
}

# While a budget allows one of two members of an offline gang to go, none goes; once it allows both, both go.
scenario_eviction_gang() {
  local i
  make <<EOF2 || return 1
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 1, selector: {matchLabels: {kept: "yes"}}}
EOF2
  { for i in 1 2; do
    slot "busy-$i" 100 30Gi 'vgpu.dev/class: online'
    slot "low-$i" 100 30Gi 'vgpu.dev/class: offline' 'vgpu.dev/gang: low' 'vgpu.dev/gang-size: "2"' |
      sed "s/^  annotations:/  labels: {kept: \"yes\"}\n&/"
  done; } | make && bound 60 busy-1 busy-2 low-1 low-2 || return 1
  start_pods low-1 low-2 || return 1
  until_true 30 has 1 field poddisruptionbudget keep '{.status.disruptionsAllowed}' ||
    fail "the budget allows: $(field poddisruptionbudget keep '{.status}')" || return 1
  slot urgent 100 30Gi 'vgpu.dev/class: online' | make || return 1
  # A refusal in another scenario counts for a minute, too.
  until_true 100 grep -q 'eviction for default/urgent was refused: .* allowed=1 asked=2' "$WORK/log/vgpu-scheduler" ||
    fail "nobody was to be evicted: $(waiting_text)" || return 1
  [ -z "$(leaving)" ] && is_bound low-1 low-2 || fail "a member went: $(leaving)" || return 1
  k patch poddisruptionbudget keep --type merge -p '{"spec": {"minAvailable": 0}}' >/dev/null || return 1
  # It is tried again after a minute.
  until_true 100 has 'low-1 low-2' leaving || fail "not evicted: $(last_line vgpu-scheduler)" || return 1
  k delete pod low-1 low-2 --force --grace-period=0 >/dev/null 2>&1
  bound 60 urgent
}

# urgent: gives the pod of standard input the high priority, and 10 processors.
urgent() {
  sed -e 's/^spec:/&\n  priorityClassName: urgent/' -e 's|vgpu.dev/slot: [0-9]*|&, cpu: 10|'
}

# The nodes have no processors left. kube-scheduler may evict one pod for 10 of them; that frees one GPU of two.
scenario_preemption() {
  local i
  make <<EOF2 || return 1
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
EOF2
  { for i in 1 2 3 4; do
    slot "low-$i" 60 4Gi | sed -e "s/^  annotations:/  labels: {kept: \"yes\"}\n&/" -e 's|vgpu.dev/slot: 1|&, cpu: 30|'
  done; } | make && bound 60 low-1 low-2 low-3 low-4 || return 1
  slot wide 100 4Gi | sed 's|vgpu.dev/slot: 1|vgpu.dev/slot: 2|' | urgent | make || return 1
  says wide 'Insufficient cpu' || return 1
  k delete pod wide --force --grace-period=0 >/dev/null 2>&1
  slot high 100 4Gi | urgent | make || return 1
  until_true 40 one_gone || fail "nobody was evicted: $(waiting_text)" || return 1
  # Evictions for the first pod would show by now, too.
  [ "$(leaving | wc -w)" -eq 1 ] || fail "more went than one: $(leaving)" || return 1
  k delete pod "$(leaving)" --force --grace-period=0 >/dev/null 2>&1
  bound 60 high
}

# manifest NAME: one of the tests, without the UID, which the server gives.
manifest() {
  sed -e '/^  uid:/d' "$ROOT/vgpu-k8s-adapter/src/test/resources/manifests/$1.yaml"
}

# Manifests in others' words, under their schedulers' names.
scenario_names() {
  local name
  for name in gpushare gpu-manager qgpu hami-share; do
    manifest "$name" | make && bound 40 "$name" || return 1
    [ -n "$(place_of "$name")" ] || fail "$name has no reservation" || return 1
  done
  # Two GPUs for one container.
  manifest hami | make && bound 40 hami || return 1
  [ "$(gpus_of hami | wc -w)" = 2 ] || fail "hami's reservation is $(place_of hami)"
}

# The state is what the API tells: killed, it knows the same again.
scenario_extender_killed() {
  { slot k-1 60 4Gi && slot k-2 60 4Gi && slot k-3 60 4Gi && slot k-4 60 4Gi; } | make || return 1
  bound 60 k-1 k-2 k-3 k-4 || return 1
  kill -KILL "${PID[vgpu-scheduler]}"
  { slot k-5 60 4Gi && slot k-6 30 4Gi; } | make || return 1
  revive
  until_true 90 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  bound 90 k-6 || return 1
  [ -z "$(field pod k-5 '{.spec.nodeName}')" ] || fail "a GPU was given twice" || return 1
  # Before, kube-scheduler asks again about a pod without a place only after five minutes.
  [ "$MINOR" -lt 32 ] || says k-5 'no room now'
}

# The extender and kube-scheduler know each other by certificates, and others are answered nothing.
scenario_extender_tls() {
  local failed=1
  EXTENDER_TLS=yes
  stop vgpu-scheduler
  start_extender
  stop kube-scheduler
  start_scheduler
  knows_its_clients && failed=0
  EXTENDER_TLS=''
  stop vgpu-scheduler
  start_extender
  stop kube-scheduler
  start_scheduler
  until_true 90 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  return $failed
}

knows_its_clients() {
  local status
  until_true 90 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  slot known 30 4Gi | make && bound 60 known || return 1
  status=$(curl -sk -o /dev/null -w '%{http_code}' -d '{}' "https://127.0.0.1:$EXTENDER_PORT/filter")
  [ "$status" = 403 ] || fail "a client without a certificate gets $status"
}

# The API server is away while pods go; watches begin anew, since it remembers nothing of before.
scenario_api_server_away() {
  local other
  { slot w-1 100 1Gi && slot w-2 100 1Gi && slot w-3 100 1Gi && slot w-4 100 1Gi; } | make || return 1
  bound 60 w-1 w-2 w-3 w-4 || return 1
  stop kube-apiserver KILL
  other=$(free_port)
  start_api_server "$other"
  until_true 120 ready "$other" || fail "$(last_line kube-apiserver)" || return 1
  k --server "https://127.0.0.1:$other" delete pod w-2 --force --grace-period=0 >/dev/null 2>&1
  stop kube-apiserver KILL
  start_api_server "$API_PORT"
  until_true 120 ready || fail "$(last_line kube-apiserver)" || return 1
  slot w-5 100 1Gi | make && bound 120 w-5 || return 1
  slot w-6 100 1Gi | make && says w-6 'no room now'
}

scenario_show() {
  { slot shown 25 2Gi && slot asking 101 2Gi && claim third 'share: 30, memory: 1Gi' && user third third; } | make &&
    bound 30 shown third && says asking 'asked 101' || return 1
  KUBECONFIG=$WORK/admin JAVA_HOME=$JDK "$ROOT/vgpu-k8s-adapter/target/image/bin/kubectl-vgpu" >"$WORK/last" 2>&1 ||
    fail "$(tail -n 1 "$WORK/last")" || return 1
  grep -q 'rack-[ab] .*default/shown .* 25% .* GPU-[ab][01]' "$WORK/last" || fail "it prints: $(cat "$WORK/last")" ||
    return 1
  grep -q 'dra .*default/third .*claim third .* 30% .* 1GiB  *fixed-share .* gpu-' "$WORK/last" ||
    fail "it prints: $(cat "$WORK/last")" || return 1
  grep -q 'default/asking .*asked 101' "$WORK/last" || fail "it prints: $(cat "$WORK/last")"
}
