# SPDX-License-Identifier: Apache-2.0
# Helpers for tests that run the operators of other projects: jobset, kueue, lws, mpi-operator. An operator runs beside
# the API server, and uses the token of the service account that its release creates. The API server calls its webhooks.
# A .bats file loads this after driver.bash.
operators=${CD_CLUSTER_DIR:-/var/lib/compute-domains-test}/operators
# The ports of the webhooks. The MPI operator has no webhook, and listens on port 8080.
declare -gA operator_port=([jobset]=9443 [lws]=9444 [kueue]=9445 [mpi-operator]=9446)
# The API version of the configuration file. The MPI operator has none.
declare -gA operator_config=([jobset]=config.jobset.x-k8s.io/v1alpha1 [lws]=config.lws.x-k8s.io/v1alpha1 [kueue]=config.kueue.x-k8s.io/v1beta2)

# with_operator NAME [LINE]: installs an operator and starts it. LINE is added to its configuration.
with_operator() {
	local name=$1 dir=$operators/$1 bin
	"$cluster/tools" "$name"
	bin=$(. "$cluster/lib.bash" && echo "${operator_bin[$name]}")
	mkdir -p "$dir/etc/kueue/metrics/certs"
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$name" -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$dir/tls.key" -out "$dir/tls.crt" 2>/dev/null
	cp "$dir"/tls.* "$dir/etc/kueue/metrics/certs/"
	[[ -z ${operator_config[$name]:-} ]] || cat >"$dir/config.yaml" <<-YAML
		apiVersion: ${operator_config[$name]}
		kind: Configuration
		health: {healthProbeBindAddress: "127.0.0.1:1${operator_port[$name]}"}
		metrics: {bindAddress: "0"}
		webhook: {port: ${operator_port[$name]}, certDir: $dir}
		leaderElection: {leaderElect: false}
		internalCertManagement: {enable: false}
		${2:-}
	YAML
	/usr/bin/python3 "$cluster/operators.py" "${operator_port[$name]}" "$dir/tls.crt" <"$bin/manifests.yaml" >"$dir/objects.json"
	# Nothing serves the webhooks yet, so they are the last.
	operator_objects "$name" '(endswith("WebhookConfiguration") or . == "RoleBinding" or . == "ClusterRoleBinding") | not' | k apply --server-side -f - >/dev/null
	operator_objects "$name" '. == "RoleBinding" or . == "ClusterRoleBinding"' | k apply --server-side -f - >/dev/null
	operator_objects "$name" '. == "CustomResourceDefinition"' | k wait --for=condition=Established --timeout=30s -f - >/dev/null
	start_operator "$name"
	operator_objects "$name" 'endswith("WebhookConfiguration")' | webhooks apply --server-side
}
# operator_objects NAME FILTER: prints the objects of an operator with these kinds, as a List.
operator_objects() { jq ".items |= map(select(.kind | $2))" "$operators/$1/objects.json"; }
# webhooks ACTION...: applies or deletes the webhooks on standard input, if there are any.
webhooks() {
	local objects
	objects=$(cat)
	[[ $(jq '.items | length' <<<"$objects") == 0 ]] || k "$@" -f - <<<"$objects" >/dev/null
}

# start_operator NAME [GATES]: starts an operator, or restarts it, and waits until it works. Only Kueue has GATES, which
# begin with a comma.
start_operator() {
	local name=$1 gates=${2:-} dir=$operators/$1 command
	stop_operator "$name"
	operator_kubeconfig "$name" >"$dir/kubeconfig"
	command=("$(. "$cluster/lib.bash" && echo "${operator_bin[$name]}")/$name")
	if [[ $name == mpi-operator ]]; then
		command+=(--kubeConfig="$dir/kubeconfig" --lock-namespace=mpi-operator -alsologtostderr)
	else
		command+=(--kubeconfig="$dir/kubeconfig" --config="$dir/config.yaml")
	fi
	[[ $name != kueue ]] || command+=(--feature-gates="VisibilityOnDemand=false$gates")
	# The path of one of Kueue's certificates cannot be configured.
	unshare --mount sh -c 'mount -t overlay -o "lowerdir=$1:/etc" overlay /etc && shift && exec "$@"' sh "$dir/etc" \
		env -u KUBECONFIG "${command[@]}" >>"$dir/log" 2>&1 3>&- &
	echo $! >"$dir/pid"
	eventually 90 operator_works "$name" || { tail -n 20 "$dir/log" >&2; return 1; }
}
# operator_works NAME: each webhook answers, or the operator has started its controller. Only Kueue's readiness covers its
# webhooks.
operator_works() {
	local url urls
	[[ $1 != kueue ]] || { curl -sf --max-time 2 "http://127.0.0.1:1${operator_port[kueue]}/readyz" >/dev/null; return; }
	urls=$(jq -r '.items[].webhooks[]?.clientConfig.url' "$operators/$1/objects.json")
	[[ -n $urls ]] || { grep -q 'Started workers' "$operators/$1/log"; return; }
	for url in $urls; do curl -skf --max-time 2 -o /dev/null -H 'Content-Type: application/json' -d '{}' "$url" || return; done
}
# operator_kubeconfig NAME: prints a kubeconfig of the operator's service account.
operator_kubeconfig() {
	local namespace account token
	read -r namespace account < <(jq -r '.items[] | select(.kind == "ServiceAccount").metadata | "\(.namespace) \(.name)"' "$operators/$1/objects.json")
	token=$(k -n "$namespace" create token "$account" --duration=24h)
	k config view --raw -o json | jq --arg token "$token" '.users[].user = {token: $token}'
}

stop_operator() {
	local file=$operators/$1/pid pid
	[[ -e $file ]] || return 0
	pid=$(<"$file")
	kill "$pid"
	timeout 30 tail --pid="$pid" -f /dev/null
	rm "$file"
}
# without_operator NAME: deletes an operator and all of its objects.
without_operator() {
	[[ -e $operators/$1/objects.json ]] || return 0
	operator_objects "$1" '. == "CustomResourceDefinition"' | k delete --ignore-not-found --timeout=60s -f - >/dev/null
	operator_objects "$1" 'endswith("WebhookConfiguration")' | webhooks delete --ignore-not-found
	stop_operator "$1"
	k delete --ignore-not-found -f "$operators/$1/objects.json" >/dev/null
	rm -r "${operators:?}/$1"
}

# with_image: replaces the image of an example on standard input with one that exists here.
with_image() { sed 's|image: .*|image: compute-domains/busybox:test|'; }
# that_sleep: the same, and the containers do not end.
that_sleep() { with_image | sed 's|command: \[.*|command: [sleep, "1000000"]|'; }
# pods_with SELECTOR: prints the running pods with these labels that are not being deleted, one name per line, sorted.
# pods_run SELECTOR N: there are exactly N pods with these labels, and all of them run.
pods_with() {
	k -n "$ns" get pods -l "$1" -o json | jq -r '[.items[] | select(.status.phase == "Running" and .metadata.deletionTimestamp == null).metadata.name] | sort[]'
}
pods_run() { [[ $(pods_with "$1" | wc -l) == "$2" && $(k -n "$ns" get pods -l "$1" -o json | jq '[.items[] | select(.status.phase != "Failed" and .status.phase != "Succeeded")] | length') == "$2" ]]; }
# uid_of POD, uids_of SELECTOR: print the UIDs of pods. nodes_of SELECTOR: prints the number of their nodes.
uid_of() { k -n "$ns" get pod "$1" -o jsonpath='{.metadata.uid}'; }
uids_of() { k -n "$ns" get pods -l "$1" -o json | jq -r '[.items[].metadata.uid] | sort[]'; }
nodes_of() { k -n "$ns" get pods -l "$1" -o json | jq '[.items[].spec.nodeName] | unique | length'; }
# all_have_channels SELECTOR: each running pod with these labels has a channel.
all_have_channels() {
	local pod
	for pod in $(pods_with "$1"); do has_channel "$pod" || return 1; done
}
