# SPDX-License-Identifier: Apache-2.0
# The control plane: networks, certificates, etcd, API server, scheduler, controller manager, DNS. lib.bash must be
# sourced first.

control=$state/control
pki=$state/pki
etcd_client=http://127.0.0.1:23790
etcd_peer=http://127.0.0.1:23800
# With CD_FRONT=none the API server itself listens on its service address, for measurements. This cannot change while
# a cluster is up.
server_address=$(cat "$control/server-address" 2>/dev/null) ||
	if [[ ${CD_FRONT:-} == none ]]; then server_address=$api_address; else server_address=$node_net.1; fi

# Settings of the machine that a cluster needs. The previous values are saved, so that `down` can restore them.
declare -A sysctls=(
	[net.ipv4.ip_forward]=1
	[fs.inotify.max_user_instances]=8192
	[fs.inotify.max_user_watches]=524288
)
# The kubelet sets these itself.
kubelet_sysctls=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops)

set_machine() {
	local key
	if [[ ! -e $state/sysctls ]]; then
		for key in "${!sysctls[@]}" "${kubelet_sysctls[@]}"; do
			echo "$key=$(sysctl -n "$key")"
		done >"$state/sysctls"
	fi
	for key in "${!sysctls[@]}"; do
		(($(sysctl -n "$key") >= sysctls[$key])) || sysctl -qw "$key=${sysctls[$key]}"
	done
}

set_network() {
	ip link show "$bridge" &>/dev/null && return
	# Without a fixed address, a bridge takes the lowest address of its ports, so each new node could change it.
	ip link add "$bridge" address 02:00:c6:12:00:01 type bridge
	# Pods reach pods on other nodes through the machine. Without this setting it would send them ICMP redirects.
	sysctl -qw "net.ipv4.conf.$bridge.send_redirects=0"
	ip addr add "$node_net.1/24" dev "$bridge"
	ip addr add "$api_address/32" dev "$bridge"
	ip addr add "$dns_address/32" dev "$bridge"
	ip link set "$bridge" up
}

# authority NAME: creates a new certificate authority.
authority() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=compute-domains-test-$1" \
		-addext keyUsage=critical,keyCertSign,cRLSign -keyout "$pki/$1.key" -out "$pki/$1.crt.new" 2>/dev/null
	mv "$pki/$1.crt.new" "$pki/$1.crt"
}

# cert NAME SUBJECT [SAN [AUTHORITY]]: creates a key and a certificate for it, signed by the cluster's authority or by
# another one.
cert() {
	local name=$1 subject=$2 san=${3:-} authority=${4:-ca}
	[[ -s $pki/$name.crt ]] && return
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "$subject" \
		-CA "$pki/$authority.crt" -CAkey "$pki/$authority.key" -addext basicConstraints=CA:FALSE \
		-addext extendedKeyUsage=serverAuth,clientAuth ${san:+-addext "subjectAltName=$san"} \
		-keyout "$pki/$name.key" -out "$pki/$name.crt.new" 2>/dev/null
	mv "$pki/$name.crt.new" "$pki/$name.crt"
}

# client_config NAME OUT: writes a kubeconfig without references to other files, so that it can be copied anywhere. It
# is replaced atomically.
client_config() {
	local name=$1 out=$2
	cat >"$out.new" <<-EOF
		apiVersion: v1
		kind: Config
		clusters:
		- name: test
		  cluster:
		    server: https://$server_address
		    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
		users:
		- name: $name
		  user:
		    client-certificate-data: $(base64 -w0 "$pki/$name.crt")
		    client-key-data: $(base64 -w0 "$pki/$name.key")
		contexts:
		- name: test
		  context: {cluster: test, user: $name}
		current-context: test
	EOF
	mv "$out.new" "$out"
}

server_names="IP:$api_address,IP:$node_net.1,IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"

# Certificates and keys that `rotate` can replace while pods run: roots.crt verifies the API server for pods, the
# front presents front.crt to pods, and sa.pub has the keys that verify the tokens of pods. clients.crt verifies
# clients for the API server.
set_pki() {
	mkdir -p "$pki"
	chmod 700 "$pki"
	if [[ ! -s $pki/ca.crt ]]; then
		authority ca
		openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$pki/sa.key" 2>/dev/null
		openssl pkey -in "$pki/sa.key" -pubout -out "$pki/sa.pub"
	fi
	[[ -s $pki/roots.crt ]] || cp "$pki/ca.crt" "$pki/roots.crt"
	[[ -s $pki/clients.crt ]] || cp "$pki/ca.crt" "$pki/clients.crt"
	cert apiserver /CN=kube-apiserver "$server_names"
	cert front /CN=kube-apiserver "$server_names"
	cert apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
	cert admin /O=system:masters/CN=admin
	cert controller-manager /CN=system:kube-controller-manager
	cert scheduler /CN=system:kube-scheduler
	client_config admin "$KUBECONFIG"
	client_config controller-manager "$control/controller-manager.kubeconfig"
	client_config scheduler "$control/scheduler.kubeconfig"
}

# The audit log has every write, and every read by a service account, because tests count them.
write_audit_policy() {
	cat >"$control/audit-policy.yaml" <<-EOF
		apiVersion: audit.k8s.io/v1
		kind: Policy
		omitStages: [RequestReceived]
		rules:
		- level: None
		  userGroups: ["system:nodes"]
		  resources: [{group: coordination.k8s.io, resources: [leases]}]
		- level: Metadata
		  verbs: [create, update, patch, delete, deletecollection]
		- level: Metadata
		  userGroups: ["system:serviceaccounts"]
		- level: None
	EOF
}

start_etcd() {
	spawn "$control/etcd.pid" "$control/etcd.log" etcd --name test --data-dir "$control/etcd" --unsafe-no-fsync --log-level warn \
		--listen-client-urls "$etcd_client" --advertise-client-urls "$etcd_client" \
		--listen-peer-urls "$etcd_peer" --initial-advertise-peer-urls "$etcd_peer" --initial-cluster "test=$etcd_peer"
}

# The API server also serves the older versions of the DRA API, because claims may use any of them. CD_APISERVER_FLAGS
# adds flags, for instance --feature-gates=DRAConsumableCapacity=true.
start_apiserver() {
	write_audit_policy
	# shellcheck disable=SC2086 # several flags in one variable
	spawn "$control/apiserver.pid" "$control/apiserver.log" kube-apiserver \
		--bind-address="$server_address" --secure-port=443 --advertise-address="$server_address" \
		--etcd-servers="$etcd_client" --service-cluster-ip-range="$service_range" --allow-privileged \
		--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
		--runtime-config="$dra_versions" "${dra_gate[@]}" \
		--client-ca-file="$pki/clients.crt" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
		--kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" \
		--kubelet-client-key="$pki/apiserver-kubelet-client.key" --kubelet-preferred-address-types=InternalIP \
		--service-account-issuer=https://kubernetes.default.svc.cluster.local \
		--service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
		--audit-policy-file="$control/audit-policy.yaml" --audit-log-path="$control/audit.log" --audit-log-maxsize=1000 \
		${CD_APISERVER_FLAGS:-}
}

front_socket=$control/front.sock
start_front() {
	spawn "$control/front.pid" "$control/front.log" front "$api_address:443" "$server_address:443" "$pki/ca.crt" \
		"$pki/front.crt" "$pki/front.key" "$front_socket"
}
front_listens() { : <"/dev/tcp/$api_address/443"; }

start_scheduler() {
	local config=$control/scheduler.kubeconfig
	spawn "$control/scheduler.pid" "$control/scheduler.log" kube-scheduler --leader-elect=false --kubeconfig="$config" \
		--authentication-kubeconfig="$config" --authorization-kubeconfig="$config" --bind-address=127.0.0.1 "${dra_gate[@]}"
}

# start_controller-manager [FLAG...]
start_controller-manager() {
	local config=$control/controller-manager.kubeconfig
	spawn "$control/controller-manager.pid" "$control/controller-manager.log" kube-controller-manager \
		--leader-elect=false --kubeconfig="$config" --authentication-kubeconfig="$config" \
		--authorization-kubeconfig="$config" --bind-address=127.0.0.1 --use-service-account-credentials \
		--root-ca-file="$pki/roots.crt" --service-account-private-key-file="$pki/sa.key" "${dra_gate[@]}" "$@"
}

start_dns() {
	spawn "$control/dns.pid" "$control/dns.log" dns "$dns_address" kubernetes.default.svc.cluster.local "$api_address" "$control/names"
}

control_services=(etcd apiserver front scheduler controller-manager dns)
[[ $server_address != "$api_address" ]] || control_services=(etcd apiserver scheduler controller-manager dns)

api_ready() {
	curl -sf --max-time 2 --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" \
		"https://$server_address/readyz"
}

control_up() {
	control_prepare
	control_start
}

control_prepare() {
	mkdir -p "$control"
	[[ ${CD_FRONT:-} != none || $server_address == "$api_address" ]] || die "the running cluster has a front; for CD_FRONT=none, remove it first (test/cluster/down)"
	echo "$server_address" >"$control/server-address"
	with_machine set_machine
	set_network
	set_pki
}

control_start() {
	local service
	for service in "${control_services[@]}"; do
		running "$control/$service.pid" && continue
		# The scheduler and the controller manager would only fail and retry without an API server.
		[[ $service == scheduler ]] && wait_for_api
		"start_$service"
	done
	wait_for_api
	touch "$control/up"
}

wait_for_api() {
	ready 60 api_ready || { tail -5 "$control/apiserver.log" >&2; die "the API server does not become ready ($control/apiserver.log)"; }
	! running "$control/front.pid" || ready 10 front_listens || die "nothing listens on the API server's service address ($control/front.log)"
}

control_down() {
	local service
	for service in dns controller-manager scheduler front apiserver etcd; do
		stop "$control/$service.pid" KILL
	done
	! ip link show "$bridge" &>/dev/null || ip link del "$bridge"
}
