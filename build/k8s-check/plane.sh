# shellcheck shell=bash
# Sourced by build/k8s-check.sh: a control plane on loopback, and vgpu-k8s beside it.

# Global, since processes end in a trap.
declare -gA PID=()
# The function that starts a role, and starts it again as a kubelet would.
declare -gA ROLE=()
RESTARTS=0
# Empty, or the feature gates of all programs.
GATES=''
# What claims need before Kubernetes 1.36.
DRA_GATES='DRAConsumableCapacity DRADeviceBindingConditions DRAResourceClaimDeviceStatus DRAPartitionableDevices'
DRA_GATES="$DRA_GATES DRADeviceTaints"
# Empty, or the roles' option --gang-claims.
GANG_CLAIMS=''
# Empty, or the seconds of the scheduler's --hold.
HOLD=''
# Empty, or after how many seconds at most kube-scheduler tries a pod again that it could not ask about.
BACKOFF=''
# Empty, or the emulated GPUs of a scenario that needs others, and the name of their directories. GPUs that are there
# stay as they were made, so each scenario has its own name.
GPUS='' GPUS_NAME=''
# By role: an option of its JVM, for a role that starts again and again.
declare -gA JVM=()

# Prints a port of the loopback address on which nobody listens.
free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

# start NAME COMMAND...: in the background; its output goes to WORK/log/NAME.
start() {
  local name=$1
  shift
  "$@" </dev/null >>"$WORK/log/$name" 2>&1 &
  PID[$name]=$!
}

# stop NAME [SIGNAL]: ends it and waits for its end.
stop() {
  local pid=${PID[$1]-}
  unset "PID[$1]" "ROLE[$1]"
  [ -n "$pid" ] || return 0
  kill "-${2-TERM}" "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
}

stop_all() {
  local name
  for name in "${!PID[@]}"; do kill -KILL "${PID[$name]}" 2>/dev/null; done
  # Those that keep a node's directories end later.
  for name in "${!PID[@]}"; do wait "${PID[$name]}" 2>/dev/null; done
}

# Starts roles that have ended once more.
revive() {
  local name
  for name in "${!ROLE[@]}"; do
    kill -0 "${PID[$name]}" 2>/dev/null && continue
    RESTARTS=$((RESTARTS + 1))
    # shellcheck disable=SC2086 # several words
    ${ROLE[$name]}
  done
}

# until_true SECONDS COMMAND...: succeeds as soon as the command does.
until_true() {
  local end=$((SECONDS + $1))
  shift
  while ! "$@" >"$WORK/last" 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    revive
    sleep 0.3
  done
}

# One certificate for all: the servers' own, and what clients trust.
make_certificate() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=vgpu-k8s-check -keyout "$WORK/key" -out "$WORK/crt" \
    -addext "subjectAltName=IP:127.0.0.1,IP:$SERVICE_ADDRESS,DNS:localhost" \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'extendedKeyUsage=serverAuth,clientAuth' \
    >"$WORK/log/openssl" 2>&1
}

# kubeconfig NAME TOKEN: writes WORK/NAME.
kubeconfig() {
  cat >"$WORK/$1" <<EOF2
apiVersion: v1
kind: Config
current-context: check
clusters: [{name: check, cluster: {server: "https://127.0.0.1:$API_PORT", certificate-authority: $WORK/crt}}]
users: [{name: check, user: {token: "$2"}}]
contexts: [{name: check, context: {cluster: check, user: check, namespace: default}}]
EOF2
}

k() {
  "$KUBECTL" --kubeconfig "${AS-$WORK/admin}" --cache-dir "$WORK/cache" --request-timeout 20s "$@"
}

start_etcd() {
  local client=https://127.0.0.1:$ETCD_PORT peer=https://127.0.0.1:$PEER_PORT
  start etcd "$ASSETS/etcd" --name check --data-dir "$WORK/etcd" --unsafe-no-fsync \
    --listen-client-urls "$client" --advertise-client-urls "$client" --listen-peer-urls "$peer" \
    --initial-advertise-peer-urls "$peer" --initial-cluster "check=$peer" --cert-file "$WORK/crt" \
    --key-file "$WORK/key" --trusted-ca-file "$WORK/crt" --client-cert-auth --peer-cert-file "$WORK/crt" \
    --peer-key-file "$WORK/key" --peer-trusted-ca-file "$WORK/crt" --peer-client-cert-auth
}

# Each write of a service account of vgpu-system is a line of WORK/audit.
make_audit_policy() {
  cat >"$WORK/audit.yaml" <<EOF2
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, userGroups: ["system:serviceaccounts:vgpu-system"], verbs: [create, update, patch, delete]}
  - {level: None}
EOF2
}

# Sets GATES: what this version of Kubernetes does not have on by default.
choose_gates() {
  case $MINOR in
    28) GATES=DevicePluginCDIDevices=true ;;
    34 | 35) GATES=${DRA_GATES// /=true,}=true ;;
  esac
}

# start_api_server PORT
start_api_server() {
  local port=$1
  shift
  case $MINOR in
    28 | 29 | 30 | 31 | 32 | 33) ;;
    34 | 35) set -- --runtime-config resource.k8s.io/v1alpha3=true ;; # kube-scheduler waits for rules of taints
    *) set -- --feature-gates GenericWorkload=true --runtime-config scheduling.k8s.io/v1alpha2=true ;;
  esac
  start kube-apiserver "$ASSETS/kube-apiserver" --bind-address "$API_ADDRESS" --secure-port "$port" \
    ${APART:+--advertise-address "$SERVICE_ADDRESS"} --kubelet-preferred-address-types InternalIP \
    --etcd-servers "https://127.0.0.1:$ETCD_PORT" --etcd-cafile "$WORK/crt" --etcd-certfile "$WORK/crt" \
    --etcd-keyfile "$WORK/key" --tls-cert-file "$WORK/crt" --tls-private-key-file "$WORK/key" \
    --client-ca-file "$WORK/crt" --token-auth-file "$WORK/tokens" --authorization-mode Node,RBAC \
    --service-account-issuer https://check.invalid --service-account-key-file "$WORK/crt" \
    --service-account-signing-key-file "$WORK/key" --service-cluster-ip-range 10.96.0.0/24 \
    --audit-policy-file "$WORK/audit.yaml" --audit-log-path "$WORK/audit" \
    --endpoint-reconciler-type none --allow-privileged ${GATES:+--feature-gates "$GATES"} "$@"
}

# ready [PORT]: succeeds if the API server is.
ready() {
  k --server "https://127.0.0.1:${1-$API_PORT}" get --raw /readyz
}

start_scheduler() {
  local to="urlPrefix: http://${EXTENDER-127.0.0.1:$EXTENDER_PORT}"
  [ -z "${EXTENDER_TLS-}" ] || to="${to/http/https}\\n    enableHTTPS: true\\n    tlsConfig: {certFile: $WORK/crt,
    keyFile: $WORK/key, caFile: $WORK/crt}"
  # The one that is published, with this extender's address, and a way to the API server.
  cat "$DEPLOY/scheduler/kube-scheduler-config.yaml" "$DEPLOY/gang-claims/kube-scheduler-extender.yaml" |
    sed -e "s|urlPrefix: .*|${to//$'\n'/ }|" >"$WORK/scheduler.yaml"
  printf 'clientConnection: {kubeconfig: %s}\nleaderElection: {leaderElect: false}\n' "$WORK/kube-scheduler" \
    >>"$WORK/scheduler.yaml"
  [ -z "$BACKOFF" ] || echo "podMaxBackoffSeconds: $BACKOFF" >>"$WORK/scheduler.yaml"
  start kube-scheduler "$ASSETS/kube-scheduler" --config "$WORK/scheduler.yaml" --secure-port 0 \
    ${GATES:+--feature-gates "$GATES"}
}

# start_controllers [NAME,...]: with these too.
start_controllers() {
  local which=${1:+$1,}serviceaccount-controller,disruption-controller
  [ "$MINOR" -lt 30 ] || which=$which,validatingadmissionpolicy-status-controller
  [ "$MINOR" -lt 34 ] || which=$which,resourceclaim-controller,device-taint-eviction-controller
  stop kube-controller-manager
  start kube-controller-manager "$ASSETS/kube-controller-manager" --kubeconfig "$WORK/kube-controller-manager" \
    --leader-elect=false --secure-port 0 --use-service-account-credentials --root-ca-file "$WORK/crt" \
    --controllers "$which" ${GATES:+--feature-gates "$GATES"}
}

start_plane() {
  local user
  API_PORT=$(free_port) API_ADDRESS=127.0.0.1
  [ -z "$APART" ] || API_PORT=443 API_ADDRESS=0.0.0.0
  ETCD_PORT=$(free_port) PEER_PORT=$(free_port) EXTENDER_PORT=$(free_port)
  make_certificate || fail "openssl makes no certificate: $(tail -n 1 "$WORK/log/openssl")" || return 1
  for user in admin kube-scheduler kube-controller-manager; do
    set -- "$(openssl rand -hex 16)" "system:$user"
    [ $user != admin ] || set -- "$1" "$user" '"system:masters"'
    printf '%s,%s,%s%s\n' "$1" "$2" "$user" "${3:+,$3}" >>"$WORK/tokens"
    kubeconfig "$user" "$1"
  done
  for user in real $FURTHER; do
    set -- "$(openssl rand -hex 16)"
    printf '%s,system:node:%s,kubelet-%s,system:nodes\n' "$1" "$user" "$user" >>"$WORK/tokens"
    kubeconfig "kubelet-$user" "$1"
  done
  make_audit_policy
  choose_gates
  start_etcd
  start_api_server "$API_PORT"
  until_true 120 ready || fail "kube-apiserver is not ready; $(last_line kube-apiserver)" || return 1
  start_controllers
}

last_line() {
  printf '%s: %s' "$1" "$(tail -n 1 "$WORK/log/$1" | cut -c 1-300)"
}

# account NAME [POD]: a kubeconfig of a service account of vgpu-system, with a token as that pod's.
account() {
  local token
  token=$(k create token "$1" --namespace vgpu-system --duration 4h ${2:+--bound-object-kind Pod} \
    ${2:+--bound-object-name "$2"}) && kubeconfig "$1" "$token"
}

# role NAME COMMAND...: a role under the service account of that name.
role() {
  local name=$1
  shift
  start "$name" env KUBECONFIG="$WORK/$name" VGPU_RUN_DIR="$WORK/run${GPUS_NAME:+-$GPUS_NAME}" \
    VGPU_EMULATOR_DIR="$WORK/gpus${GPUS_NAME:+-$GPUS_NAME}" VGPU_EMULATOR="${GPUS:-devices=1,memory=8GiB}" \
    XDG_CACHE_HOME="$WORK/cache" JAVA_HOME="$JDK" ${JVM[$name]:+JDK_JAVA_OPTIONS="${JVM[$name]}"} "$@"
}

start_node_role() {
  ROLE[vgpu-node]=start_node_role
  role vgpu-node "$ROOT/vgpu-k8s-adapter/target/image/bin/vgpu-k8s" node --slots 4 --metrics-port 0 \
    ${GANG_CLAIMS:+"$GANG_CLAIMS"} --node-name dra --kubelet "$WORK/kubelet" --cdi "$WORK/cdi"
}

start_extender() {
  ROLE[vgpu-scheduler]=start_extender
  # The options are those of the Deployment.
  role vgpu-scheduler "$JDK/bin/java" -XX:+UseSerialGC -Xmx1g -cp "$ROOT/vgpu-k8s-adapter/target/image/lib/*" \
    dev.vgpu.k8s.VgpuK8sCommand scheduler --port "$EXTENDER_PORT" --hold "${HOLD:-20}" ${GANG_CLAIMS:+"$GANG_CLAIMS"} \
    ${EXTENDER_TLS:+--tls-certificate "$WORK/crt" --tls-key "$WORK/key" --client-ca "$WORK/crt"}
}

extender_ready() {
  curl -sfk "http${EXTENDER_TLS:+s}://127.0.0.1:$EXTENDER_PORT/readyz"
}
