# shellcheck shell=bash
# Sourced by build/k8s-check.sh: a node with a kubelet and containerd, where DIR has them, and what is checked on it.
#
# All of it runs in mount, network and cgroup directories of its own: paths of the manifests, such as /var/lib/kubelet,
# are directories of WORK there. The API server has the address of the Service "kubernetes", so no kube-proxy is needed.
# The images are made of this machine's own programs, under the names that the manifests use.

KUBELET_NAMES='kubelet containerd containerd-shim-runc-v2 ctr runc bridge host-local loopback'
SERVICE_ADDRESS=10.96.0.1
# Another run of the same machine has another one.
NODE_CGROUP=vgpu-k8s-check-$$
VGPU_IMAGE=docker.io/library/vgpu-k8s:latest
KUBELET_CONTROLLERS=daemonset-controller,root-ca-certificate-publisher-controller

# The kubelet's programs that are missing; empty if all are there.
missing_of_kubelet() {
  local name missing=''
  [ "$(id -u)" = 0 ] || missing='root'
  for name in $KUBELET_NAMES; do [ -x "$ASSETS/$name" ] || missing="$missing${missing:+, }$name"; done
  for name in ip nsenter unshare; do command -v $name >/dev/null 2>&1 || missing="$missing${missing:+, }$name"; done
  echo "$missing"
}

# Directories and addresses of this process's own mount and network namespace.
make_node_of_its_own() {
  local dir
  mount --make-rshared / && ip link set lo up && ip address add $SERVICE_ADDRESS/32 dev lo || return 1
  mount -t tmpfs -o mode=755 vgpu-check /run && mkdir -p /run/cdi /run/vgpu /run/containerd || return 1
  mkdir -p "$WORK"/node/{lib,lib-work,log,log-work,kubelet,logs,cni,volume-plugins} || return 1
  # What is written there goes to WORK.
  for dir in lib log; do
    mount -t overlay -o "lowerdir=/var/$dir,upperdir=$WORK/node/$dir,workdir=$WORK/node/$dir-work" overlay \
      "/var/$dir" || return 1
  done
  mkdir -p /var/lib/kubelet /var/lib/vgpu && mount --bind "$WORK/node/kubelet" /var/lib/kubelet || return 1
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    mkdir -p "/sys/fs/cgroup/$NODE_CGROUP/real"
  else
    for dir in /sys/fs/cgroup/*/; do mkdir -p "$dir$NODE_CGROUP/real" || return 1; done
  fi
}

# The containers and their shims end with their node, whose directories are not to be seen any more.
end_node() {
  local i pids name
  for name in "${!HOLDER[@]}"; do end_holder "$name"; done
  for ((i = 0; i < 50; i++)); do
    pids=$(
      find /sys/fs/cgroup -path "*/$NODE_CGROUP/*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u
      pgrep -f "^$ASSETS/containerd-shim-runc-v2 .* -address /run/containerd/" --ns $$ --nslist mnt
    )
    [ -n "$pids" ] || break
    # shellcheck disable=SC2086 # a list of numbers
    kill -KILL $pids 2>/dev/null
    sleep 0.1
  done
  find /sys/fs/cgroup -depth -type d -path "*/$NODE_CGROUP*" -exec rmdir {} + 2>/dev/null
  umount -R -l /run /var/lib/kubelet /var/lib /var/log 2>/dev/null
}

# copy_program ROOT PROGRAM...: with the libraries that the dynamic linker finds for it.
copy_program() {
  local root=$1 file
  shift
  for file in "$@"; do
    printf '%s\n' "$file"
    ldd "$file" 2>/dev/null | grep -o '/[^ ]*'
  done | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")" && cp -L --preserve=mode "$file" "$root$file" || return 1
  done
}

# image NAME ROOT CONFIG: the tree as an image of one layer, in containerd's store.
image() {
  local dir=$WORK/node/image
  rm -rf "$dir" && mkdir -p "$dir" && tar -C "$2" --owner=0 --group=0 --numeric-owner -cf "$dir/layer.tar" . || return 1
  printf '{"architecture":"amd64","os":"linux","config":{%s},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$3" "$(sha256sum "$dir/layer.tar" | cut -d ' ' -f 1)" >"$dir/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$1" >"$dir/manifest.json"
  tar -C "$dir" -cf "$dir.tar" manifest.json config.json layer.tar &&
    "$ASSETS/ctr" -a /run/containerd/containerd.sock -n k8s.io images import --local "$dir.tar" &&
    rm -rf "$dir" "$dir.tar"
}

make_images() {
  local root=$WORK/node/root path='"Env":["PATH=/usr/local/bin:/usr/bin:/bin"]' name
  mkdir -p "$root"/{usr/bin,usr/lib,usr/lib64,usr/sbin,tmp,etc,proc,sys,dev,run,var} &&
    ln -s usr/bin usr/lib usr/lib64 usr/sbin "$root" && ln -s ../run "$root/var/run" && chmod 1777 "$root/tmp" ||
    return 1
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$root/etc/passwd"
  for name in sh env grep sleep; do copy_program "$root" "/usr/bin/$name" || return 1; done
  for name in libdl.so.2 libpthread.so.0 librt.so.1 libm.so.6; do
    copy_program "$root" "$(ldconfig -p | sed -n "s|.*$name (libc6,x86-64.* => ||p" | head -n 1)" || return 1
  done
  copy_program "$root" "$ROOT/samples/cuda-programs/target/programs/spin" &&
    mv "$root$ROOT/samples/cuda-programs/target/programs/spin" "$root/usr/bin/spin" || return 1
  image docker.io/library/debian:bookworm-slim "$root" "$path,\"Cmd\":[\"sleep\",\"infinity\"]" || return 1
  if [ -n "$IMAGE" ]; then
    import_image
    return
  fi
  "$JDK/bin/jlink" --strip-java-debug-attributes --no-header-files --no-man-pages --compress=2 \
    --output "$root/opt/java" --add-modules \
    "$(sed -n 's/^ *\(java\.base,[^ ]*\)$/\1/p' "$ROOT/vgpu-k8s-adapter/Containerfile")" &&
    "$root/opt/java/bin/java" -Xshare:dump &&
    copy_libraries "$root" && mkdir -p "$root/opt/vgpu" &&
    cp -R "$ROOT/vgpu-k8s-adapter/target/image/lib" "$root/opt/vgpu/lib" || return 1
  image $VGPU_IMAGE "$root" "$path,\"Entrypoint\":$(entry_point)"
}

# The image of --image gets the name that the manifests use.
import_image() {
  local ctr="$ASSETS/ctr -a /run/containerd/containerd.sock -n k8s.io images" name
  $ctr import --local "$IMAGE" && name=$($ctr list -q | grep 'vgpu-k8s:latest$' | head -n 1) || return 1
  [ "$name" = $VGPU_IMAGE ] || $ctr tag "$name" $VGPU_IMAGE
}

# What the runtime in ROOT/opt/java needs of this machine.
copy_libraries() {
  local file
  find "$1/opt/java" -type f \( -name '*.so' -o -path '*/bin/java' \) -exec ldd {} + 2>/dev/null |
    grep -o '/[^ ]*' | grep -v -e ':$' -e "^$1" | sort -u | while read -r file; do
    mkdir -p "$1$(dirname "$file")" && cp -L --preserve=mode "$file" "$1$file" || return 1
  done
}

# The Containerfile's.
entry_point() {
  sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' "$ROOT/vgpu-k8s-adapter/Containerfile" | sed -n 's/^ENTRYPOINT //p'
}

start_containerd() {
  cat >"$NODE_DIR/containerd.toml" <<EOF2
version = 3
root = "$NODE_DIR/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "docker.io/library/debian:bookworm-slim"
[plugins.'io.containerd.cri.v1.runtime']
enable_cdi = true
restrict_oom_score_adj = true
cdi_spec_dirs = ["/var/run/cdi"]
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["$ASSETS"]
conf_dir = "$NODE_DIR/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "$ASSETS/runc"
EOF2
  cat >"$NODE_DIR/cni/10-check.conflist" <<EOF2
{"cniVersion": "1.0.0", "name": "check", "plugins": [{"type": "bridge", "bridge": "check${NODE#real}",
 "isGateway": true, "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "$NODE_SUBNET"}]],
 "routes": [{"dst": "0.0.0.0/0"}]}}]}
EOF2
  start "containerd${NODE#real}" "${IN_NODE[@]}" env PATH="$ASSETS:$PATH" \
    "$ASSETS/containerd" --config "$NODE_DIR/containerd.toml"
}

start_kubelet() {
  local name=kubelet${NODE#real}
  ROLE[$name]="on_node $NODE start_kubelet"
  start "$name" "${IN_NODE[@]}" "$ASSETS/kubelet" --config "$NODE_DIR/kubelet.yaml" \
    --kubeconfig "$WORK/kubelet-$NODE" --hostname-override "$NODE" --node-ip "$NODE_ADDRESS" --root-dir /var/lib/kubelet \
    ${GATES:+--feature-gates "$GATES"}
}

configure_kubelet() {
  echo 'nameserver 127.0.0.1' >"$NODE_DIR/resolv.conf"
  cat >"$NODE_DIR/kubelet.yaml" <<EOF2
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: $NODE_ADDRESS
healthzPort: 0
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$NODE_CGROUP/$NODE
failSwapOn: false
localStorageCapacityIsolation: false
volumePluginDir: $NODE_DIR/volume-plugins
resolvConf: $NODE_DIR/resolv.conf
evictionHard: {memory.available: 10Mi}
nodeStatusUpdateFrequency: 2s
EOF2
  [ "$MINOR" -lt 29 ] || echo "podLogsDir: $NODE_DIR/logs" >>"$NODE_DIR/kubelet.yaml"
  [ "$MINOR" -lt 31 ] || echo 'failCgroupV1: false' >>"$NODE_DIR/kubelet.yaml"
}

# phase_of POD
phase_of() {
  field pod "$1" '{.status.phase}'
}

# reach PHASE SECONDS POD...: waits until all are in the phase.
reach() {
  local phase=$1 time=$2 name
  shift 2
  for name in "$@"; do
    until_true "$time" has "$phase" phase_of "$name" || fail "$name is not $phase: $(why_not "$name")" || return 1
  done
}

# runs SECONDS POD...: waits until all run.
runs() {
  reach Running "$@"
}

# ended SECONDS POD...: waits until all have ended well.
ended() {
  reach Succeeded "$@"
}

why_not() {
  echo "$(phase_of "$1") $(field pod "$1" '{.status.containerStatuses[*].state}') $(events_of "$1")" \
    "$(k logs "$1" 2>&1 | tail -n 2)"
}

# program NAME CLAIM WORD...: a pod that runs a program under a claim, once.
program() {
  local words
  words=$(printf ', "%s"' "${@:3}")
  user "$1" "$2" | sed -e "s|image: none|image: debian:bookworm-slim, command: [${words#, }]|" \
    -e 's|^spec:|&\n  restartPolicy: Never\n  terminationGracePeriodSeconds: 1|'
}

# node_pod: the DaemonSet's pod on node "real".
node_pod() {
  k get pods -n vgpu-system -l app.kubernetes.io/name=vgpu-node -o jsonpath='{.items[0].metadata.name}'
}

slice_of_real() {
  field resourceslice real-vgpu.dev '{.spec.devices[*].name}'
}

node_metrics() {
  curl -sf "http://$(k get pod -n vgpu-system "$(node_pod)" -o jsonpath='{.status.podIP}'):9401/metrics"
}

# holds NUMBER: whether the node has that many virtual GPUs.
holds() {
  node_metrics >"$WORK/metrics" && [ "$(grep -c '^vgpu_memory_quota_bytes' "$WORK/metrics")" = "$1" ]
}

# let_go: all virtual GPUs are given back once their pods are deleted.
let_go() {
  k delete pods --all --grace-period=1 --wait=false >/dev/null
  until_true 60 nothing_runs || fail "pods stay: $(waiting_text)" || return 1
  until_true 30 holds 0 || fail "virtual GPUs stay: $(grep '^vgpu_memory_quota_bytes' "$WORK/metrics")"
}

nothing_runs() {
  [ -z "$(k get pods -o name)" ]
}

# emulate_gpus: the DaemonSet's roles have emulated GPUs, as from deploy/emulated. Other directories take that away.
emulate_gpus() {
  k set env daemonset/vgpu-node -n vgpu-system VGPU_EMULATOR_DIR=/run/vgpu/emulator \
    VGPU_EMULATOR=devices=2,memory=8GiB >"$WORK/last" 2>&1 || fail "$(cat "$WORK/last")"
}

# The published DaemonSet, as its pod: the kubelet starts it and registers its plugin, and the node's slice is there.
scenario_kubelet_daemon_set() {
  local namespace
  stop vgpu-node
  install_base || return 1
  emulate_gpus || return 1
  k delete nodes --all --wait=false >"$WORK/last" 2>&1
  # No garbage collector runs, which would delete the slices of these nodes.
  [ "$MINOR" -lt 34 ] || k delete resourceslices --all >"$WORK/last" 2>&1
  k delete pods -n vgpu-system --all --force --grace-period=0 >"$WORK/last" 2>&1
  start_controllers "$KUBELET_CONTROLLERS"
  # OpenShift's builds of the API server mount it into each pod.
  for namespace in default vgpu-system; do
    k create configmap openshift-service-ca.crt -n $namespace --from-literal service-ca.crt= >"$WORK/last" 2>&1
  done
  on_node real configure_kubelet
  on_node real start_containerd
  until_true 60 "$ASSETS/ctr" -a /run/containerd/containerd.sock version || fail "$(last_line containerd)" || return 1
  make_images >"$WORK/log/images" 2>&1 || fail "$(last_line images)" || return 1
  on_node real start_kubelet
  until_true 90 is_ready real || fail "the node is not ready: $(last_line kubelet)" || return 1
  k taint nodes --all node.kubernetes.io/not-ready:NoSchedule- >"$WORK/last" 2>&1
  if [ "$MINOR" -lt 34 ]; then
    until_true 120 has 32 slots_of_real || fail "no slots: $(k get pods -n vgpu-system 2>&1); $(last_line kubelet)"
    return
  fi
  until_true 120 has gpu- slice_of_real || fail "no slice: $(k get pods -n vgpu-system 2>&1); $(last_line kubelet)"
}

# The published example, as it is; and with its pods the virtual GPUs go.
scenario_kubelet_claims() {
  k create -f "$DEPLOY/two-pods.yaml" >/dev/null || fail "two-pods.yaml is refused" || return 1
  runs 60 one two || return 1
  until_true 20 has VGPU_LEASE= k logs one || fail "one prints: $(k logs one 2>&1)" || return 1
  until_true 20 holds 2 || fail "the node does not hold 2: $(cat "$WORK/metrics")" || return 1
  let_go
}

# share_of POD: what a program that ran alone in its pod says of the GPU's time that it had.
share_of() {
  k logs "$1" | sed -n 's/.*"share_percent":\([0-9.]*\).*/\1/p'
}

# Two programs of one GPU are held to their shares, and a third to its quota.
scenario_kubelet_shares() {
  {
    claim sixty 'share: 60, memory: 2Gi' && program sixty sixty spin --seconds 10 --hold 1GiB --json
    claim thirty 'share: 30, memory: 2Gi' && program thirty thirty spin --seconds 10 --hold 1GiB --json
    claim greedy 'share: 10, memory: 1Gi' && program greedy greedy spin --seconds 1 --hold 2GiB
  } | make || return 1
  ended 90 sixty thirty || return 1
  until_true 30 has Failed phase_of greedy || fail "2 GiB in 1 GiB: $(why_not greedy)" || return 1
  NOTE="60 % had $(share_of sixty), 30 % had $(share_of thirty)"
  awk -v a="$(share_of sixty)" -v b="$(share_of thirty)" 'BEGIN { exit a < 1 || b < 1 || a > 62 || b > 32 }' ||
    fail "60 % had $(share_of sixty), 30 % had $(share_of thirty)" || return 1
  let_go
}

# prepare_times: how many of the plugin's answers to prepare the kubelet has seen within each time, in seconds.
prepare_times() {
  local series='dra_grpc_operations_duration_seconds_bucket{driver_name="vgpu.dev"'
  curl -sk "https://$SERVICE_ADDRESS:10250/metrics" |
    sed -n "s|^$series.*NodePrepareResources\".*le=\"\(.*\)\"} |\1 |p"
}

# What preparing adds to a pod's start: pods one after another.
scenario_kubelet_prepare() {
  local i
  prepare_times >"$WORK/before"
  for ((i = 0; i < 20; i++)); do
    { claim "p-$i" 'share: 4, memory: 256Mi' && program "p-$i" "p-$i" sh -c 'exit 0'; } | make || return 1
    ended 60 "p-$i" || return 1
  done
  prepare_times >"$WORK/after"
  NOTE=$(awk 'FILENAME == ARGV[1] { before[$1] = $2; next }
    $2 - before[$1] > last { printf "%s%d answers within %.2f s", last ? ", " : "", $2 - before[$1], $1
      last = $2 - before[$1] }' "$WORK/before" "$WORK/after")
  NOTE="$NOTE (goal: all within 0.10 s)"
  awk 'FILENAME == ARGV[1] { before[$1] = $2; next }
    $1 == "0.1" { quick = $2 - before[$1] }
    $1 == "+Inf" { all = $2 - before[$1] }
    END { exit !(all > 0 && quick == all) }' "$WORK/before" "$WORK/after" || fail "not all answers within 0.1 s" || return 1
  let_go
}

# One request of two GPUs is one virtual GPU on both.
scenario_kubelet_several() {
  {
    claim both 'share: 40, memory: 1Gi' | sed -e 's/deviceClassName: vgpu.dev/&, count: 2/' \
      -e 's|^    requests: .*|&\n    constraints: [{requests: [gpu], distinctAttribute: vgpu.dev/uuid}]|'
    program both both sh -c 'spin --device 0 --seconds 1 --json; exec spin --device 1 --seconds 1 --json'
  } | make || return 1
  ended 60 both || return 1
  [ "$(share_of both | wc -l)" = 2 ] || fail "it prints: $(k logs both)" || return 1
  let_go
}

# The node role's process, which its container shares with the machine.
role_process() {
  local pid
  for pid in $(pgrep -f 'dev.vgpu.k8s.VgpuK8sCommand node( |$)'); do
    grep -q "/$NODE_CGROUP/" "/proc/$pid/cgroup" && echo "$pid"
  done
}

# The node role is killed while a program runs; what comes meanwhile runs once it is back.
scenario_kubelet_killed() {
  local before
  { claim old 'share: 40, memory: 1Gi' && program old old spin --seconds 25 --json; } | make || return 1
  runs 60 old || return 1
  before=$(role_process)
  kill -KILL "$before"
  { claim new 'share: 40, memory: 1Gi' && program new new spin --seconds 1 --json; } | make || return 1
  ended 120 old new || return 1
  [ "$(role_process)" != "$before" ] || fail "the node role was not killed" || return 1
  NOTE="40 % had $(share_of old) beside the kill"
  let_go
}

# The kubelet is killed; a pod that is deleted meanwhile gives its virtual GPU back, and the others go on.
scenario_kubelet_restarted() {
  {
    claim gone 'share: 20, memory: 1Gi' && program gone gone sleep 600
    claim stays 'share: 20, memory: 1Gi' && program stays stays spin --seconds 20 --json
  } | make || return 1
  runs 60 gone stays || return 1
  stop kubelet KILL
  k delete pod gone --wait=false >/dev/null
  on_node real start_kubelet
  until_true 60 is_away gone || fail "the pod stays: $(why_not gone)" || return 1
  until_true 30 holds 1 || fail "the node holds: $(grep '^vgpu_memory_quota_bytes' "$WORK/metrics")" || return 1
  { claim next 'share: 20, memory: 1Gi' && program next next spin --seconds 1 --json; } | make || return 1
  ended 90 stays next || return 1
  let_go
}

is_away() {
  ! k get pod "$1"
}

# node_arguments LIST: the DaemonSet's container has these from now on.
node_arguments() {
  k patch daemonset vgpu-node -n vgpu-system --type json >/dev/null \
    -p "[{\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/args\", \"value\": [$1]}]"
}

slots_of_real() {
  field node real '{.status.allocatable.vgpu\.dev/slot}'
}

# worker NAME SHARE MEMORY SLOTS WORD...: a pod of the second way that runs a program, once.
worker() {
  local words
  words=$(printf ', "%s"' "${@:5}")
  slot "$1" "$2" "$3" | sed -e "s|image: none|image: debian:bookworm-slim, command: [${words#, }]|" \
    -e "s|vgpu.dev/slot: 1|vgpu.dev/slot: $4|" -e 's|^spec:|&\n  restartPolicy: Never|'
}

# The API server is away for a minute. Programs go on under their shares. What ends meanwhile is given back afterwards.
scenario_kubelet_away() {
  {
    claim stays 'share: 40, memory: 1Gi' && program stays stays spin --seconds 75 --json
    claim ends 'share: 20, memory: 1Gi' && program ends ends sleep 15
  } | make || return 1
  runs 60 stays ends || return 1
  stop kube-apiserver KILL
  sleep 60
  start_api_server "$API_PORT"
  until_true 120 ready || fail "$(last_line kube-apiserver)" || return 1
  { claim next 'share: 60, memory: 1Gi' && program next next spin --seconds 1 --json; } | make || return 1
  ended 120 ends stays next || return 1
  NOTE="40 % had $(share_of stays)"
  awk -v share="$(share_of stays)" 'BEGIN { exit share < 1 || share > 42 }' || fail "$NOTE" || return 1
  let_go
}

# health_of POD: what the kubelet says of its GPU.
health_of() {
  field pod "$1" '{.status.containerStatuses[0].allocatedResourcesStatus[*].resources[*].health}'
}

# emulate_real LINE: NVML's readings of the node's GPUs are so from now on.
emulate_real() {
  echo "$1" >/run/vgpu/emulator/nvml.new && mv /run/vgpu/emulator/nvml.new /run/vgpu/emulator/nvml
}

# A fault of the GPU is in the status of the pod that has it.
scenario_kubelet_health() {
  { claim ill 'share: 20, memory: 1Gi' && program ill ill sleep 600; } | make && runs 60 ill || return 1
  until_true 60 has Healthy health_of ill || fail "a sound GPU is: $(health_of ill)" || return 1
  emulate_real rows_pending=1
  until_true 60 has Unhealthy health_of ill || fail "a GPU with a fault is: $(health_of ill)" || return 1
  emulate_real rows_pending=0
  until_true 60 has Healthy health_of ill || fail "a GPU that was mended is: $(health_of ill)" || return 1
  let_go
}

# The second way: the device plugin, with vgpu's scheduler.
scenario_kubelet_slots() {
  node_arguments '"node", "--slots", "8"' || return 1
  until_true 90 has 8 slots_of_real || fail "the node has $(slots_of_real) slots" || return 1
  {
    worker half 50 2Gi 1 spin --seconds 8 --hold 1GiB --json
    worker other 40 2Gi 1 spin --seconds 8 --hold 1GiB --json
    worker pair 30 1Gi 2 sh -c 'spin --device 0 --seconds 1 --json; exec spin --device 1 --seconds 1 --json'
    worker excess 10 1Gi 1 spin --seconds 1 --hold 2GiB
  } | make || return 1
  ended 90 half other pair || return 1
  until_true 30 has Failed phase_of excess || fail "2 GiB in 1 GiB: $(why_not excess)" || return 1
  # shellcheck disable=SC2034 # report prints it
  NOTE="50 % had $(share_of half), 40 % had $(share_of other)"
  [ "$(share_of pair | wc -l)" = 2 ] || fail "a container of two slots prints: $(k logs pair)" || return 1
  let_go
}

# leaders: the name and the address of the scheduler's pod that is ready.
leaders() {
  local each='{.metadata.name} {.status.podIP}{"\n"}'
  k get pods -n vgpu-system -l app=vgpu-scheduler \
    -o jsonpath="{range .items[?(@.status.containerStatuses[0].ready==true)]}$each{end}"
}

# leads_but FORMER: one pod is ready, and it is another than FORMER.
leads_but() {
  local now
  now=$(leaders)
  [ "$(wc -l <<<"$now")" = 1 ] && [ -n "$now" ] && [ "${now% *}" != "$1" ]
}

# asks_leader: kube-scheduler asks the pod that leads. There is no Service's address here.
asks_leader() {
  EXTENDER=$(leaders | cut -d ' ' -f 2):8899
  stop kube-scheduler
  start_scheduler
}

scheduler_pods() {
  k get pods -n vgpu-system -l app=vgpu-scheduler 2>&1
  k logs -n vgpu-system -l app=vgpu-scheduler --prefix --tail 3 2>&1
}

# The published Deployment, as its pods: one of two leads; if it goes, the other does.
scenario_kubelet_scheduler() {
  local failed=1
  install_more scheduler || return 1
  stop vgpu-scheduler
  start_controllers "$KUBELET_CONTROLLERS,deployment-controller,replicaset-controller"
  two_schedulers && failed=0
  k scale deployment vgpu-scheduler -n vgpu-system --replicas 0 >"$WORK/last" 2>&1
  until_true 60 no_schedulers || failed=1
  start_controllers "$KUBELET_CONTROLLERS"
  unset EXTENDER
  stop kube-scheduler
  start_scheduler
  start_extender
  return $failed
}

no_schedulers() {
  [ -z "$(k get pods -n vgpu-system -l app=vgpu-scheduler -o name)" ]
}

two_schedulers() {
  local first
  node_arguments '"node", "--slots", "8"' || return 1
  until_true 90 has 8 slots_of_real || fail "the node has $(slots_of_real) slots" || return 1
  until_true 120 leads_but none || fail "none is ready: $(scheduler_pods)" || return 1
  first=$(leaders | cut -d ' ' -f 1)
  asks_leader
  worker by-first 50 2Gi 1 spin --seconds 1 --json | make && ended 90 by-first || return 1
  k delete pod -n vgpu-system "$first" --wait=false >/dev/null
  until_true 120 leads_but "$first" || fail "no other leads: $(scheduler_pods)" || return 1
  asks_leader
  worker by-second 60 2Gi 1 spin --seconds 1 --json | make && ended 90 by-second || return 1
  let_go
}

# timed NAME SHARE SECONDS: a pod with a claim that sleeps, and may run that long.
timed() {
  claim "$1" "share: $2, memory: 256Mi"
  program "$1" "$1" sleep 600 | sed "s|^spec:|&\n  activeDeadlineSeconds: $3|"
}

# gang_claims_on_real: the scheduler and the DaemonSet's roles have the option.
gang_claims_on_real() {
  local said
  said=$(k apply --validate=strict -k "$DEPLOY/gang-claims" 2>&1) || fail "$said" || return 1
  emulate_gpus || return 1
  GANG_CLAIMS=--gang-claims
  stop vgpu-scheduler
  start_extender
  until_true 90 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  node_arguments '"node", "--gang-claims"'
}

# gang_claims_off_real: they have it no more.
gang_claims_off_real() {
  GANG_CLAIMS=''
  stop vgpu-scheduler
  k delete clusterrole,clusterrolebinding vgpu-gang-claims >"$WORK/last" 2>&1
  clear_up
  start_extender
  node_arguments '"node"'
  until_true 90 extender_ready || fail "$(last_line vgpu-scheduler)" || return 1
  until_true 90 real_waits_for_nobody || fail "the slice keeps its conditions"
}

real_waits_for_nobody() {
  has gpu- slice_of_real && ! real_waits_for_gangs
}

# A gang that needs both GPUs whole gets them once the pods before it have ended, although small pods keep coming.
scenario_kubelet_gang() {
  local failed=1 said
  gang_claims_on_real && gang_beside_small_pods && failed=0
  said=$REASON
  gang_claims_off_real || failed=1
  REASON=${said:-$REASON}
  return $failed
}

gang_beside_small_pods() {
  local i created
  until_true 90 real_waits_for_gangs || fail "the slice has no conditions" || return 1
  { timed first 60 25 && timed second 60 25; } | make && runs 60 first second || return 1
  { member large 1 100 && member large 2 100; } |
    sed 's|image: none|image: debian:bookworm-slim, command: [sleep, "5"]|' | make || return 1
  # A small pod of the same second might count as the older one.
  created=$(field pod large-1 '{.metadata.creationTimestamp}') && until_true 5 is_over "$created" ||
    fail "the time of creation of the gang: $created" || return 1
  for ((i = 0; i < 8; i++)); do
    timed "small-$i" 30 40 | make || return 1
    sleep 2
  done
  until_true 90 is_bound large-1 large-2 || fail "the gang waits: $(waiting_text) $(events_of large-1)" || return 1
  let_go
}

real_waits_for_gangs() {
  has gang-complete field resourceslice real-vgpu.dev '{.spec.devices[*].bindingConditions}'
}
