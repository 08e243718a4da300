#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Certificate authorities, tokens and client certificates are replaced under running programs: no request fails
# because of it, nothing is restarted, watches continue, and workloads start during and after it.

load driver
load absence

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	everything_passes
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	[[ -n ${BATS_TEST_COMPLETED:-} || ! -e $outside.log ]] || tail -20 "$outside.log"
	nobody_outside
	ns_end # last, because the result of a teardown is that of its last command
}

rotate() { "$cluster/rotate" "$@"; }
# cluster_has PATH: prints the path of this file or folder of the cluster.
cluster_has() { (. "$cluster/lib.bash" && echo "$state/$1"); }

# ours: prints the process IDs of all programs of the driver. It is called once, so that a restarted program would be
# missing.
ours() {
	local uids pid
	uids=$(our_pods uid)
	for pid in $(pgrep -x -f '(/usr/bin/)?compute-domain-[a-z-]*( .*)?'); do
		! grep -qsF "$uids" "/proc/$pid/cgroup" || echo "$pid"
	done
}
our_pods() { k -n "$driver_ns" get pods -o json | jq -r ".items[].metadata | select(.deletionTimestamp == null) | .$1"; }

# given PID FILE: prints a file of the service account in the pod of a program.
given() { cat "/proc/$1/root/run/secrets/kubernetes.io/serviceaccount/$2"; }
# newest_in: the text contains the newest authority of the server. alone_in: it contains no other.
newest_in() { grep -qF "$(sed -n 2p "$(cluster_has pki)/server-ca.crt")"; }
alone_in() { diff -q - "$(cluster_has pki)/server-ca.crt" >/dev/null; }
published() { k -n "$driver_ns" get configmap kube-root-ca.crt -o jsonpath='{.data.ca\.crt}' | "$1"; }
all_given() {
	local pid what=$1
	shift
	for pid; do given "$pid" ca.crt | "$what" || return 1; done
}
# A kubelet looks at a pod when it changes, otherwise about once a minute. It may get the second change after that.
all_looked_at_and_given() {
	k -n "$driver_ns" annotate pods --all --overwrite "looked-at=$EPOCHREALTIME" >/dev/null
	eventually 3 all_given "$@"
}
# issued: prints when the token in the text was issued, in seconds.
issued() { jq -R 'split(".")[1] | gsub("-"; "+") | gsub("_"; "/") | . + "=" * ((4 - length % 4) % 4) | @base64d | fromjson | .iat'; }
all_tokens_since() {
	local pid since=$1
	shift
	for pid; do (($(given "$pid" token | issued) >= since)) || return 1; done
}

# all_in POD...: the text has a line for each of these pods.
all_in() { [[ -z $(comm -23 <(printf '%s\n' "$@" | sort) <(sort -u)) ]]; }
# watching_since AUDIT-MARK FRONT-MARK POD...: each of these pods has opened a connection and begun a watch since
# then.
watching_since() {
	local audit=$1 log=$2
	shift 2
	tail -c "+$((log + 1))" "$(cluster_has control)/front.log" | sed -n 's|.* new connection: .*/||p' | all_in "$@" || return 1
	tail -c "+$((audit + 1))" "$(cluster_has control)/audit.log" | jq -r 'select(.verb == "watch" and .stage == "ResponseStarted") |
		.user.extra["authentication.kubernetes.io/pod-name"][0]?' | all_in "$@"
}
# reconnected POD...: ends all connections of pods gracefully, and waits until each of these pods has new ones.
reconnected() {
	local audit log
	audit=$("$cluster/audit" mark)
	log=$(front_mark)
	front goaway
	eventually 30 watching_since "$audit" "$log" "$@"
}

front_mark() { stat -c %s "$(cluster_has control)/front.log"; }
# none: fails if there is a line to read, and prints it.
none() { if grep . >&2; then return 1; fi; }
# failed_since TIME AUDIT-MARK FRONT-MARK: prints failed requests and reported errors of the driver's pods. A starting
# kubelet deletes the ResourceSlices of its node, which does not count.
failed_since() {
	local app requests
	requests=$("$cluster/audit" "$2") || echo "the audit log cannot be read"
	grep -F "$driver_ns" <<<"$requests" | awk '$NF >= 400'
	tail -c "+$(($3 + 1))" "$(cluster_has control)/front.log" | grep -E 'of the server|TLS|tls'
	for app in compute-domain-controller compute-domain-kubelet-plugin imex-daemon; do
		k -n "$driver_ns" logs -l app=$app --all-containers --since-time="$1" --tail=-1 --max-log-requests=20 --prefix
	done | complaints | grep -v 'another client has overwritten the ResourceSlice'
}
complaints() { grep -E '(^|\] )[WEF][0-9]{4} '; }

# failure: the cluster's CA and the tokens are replaced -> all programs continue without a restart
# bats test_tags=long
@test "the API server's certificate authority and the tokens of pods are replaced" {
	local since audit log before pods pids expired restarting=()
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
	eventually 45 condition_is d PeersConnected True
	eventually 20 labelled 0 1
	before=$(state_of_workloads 0 1)
	pods=$(our_pods name)
	pids=$(ours)
	[[ $(wc -w <<<"$pids") -ge 10 ]]
	since=$(date -u +%FT%TZ)
	audit=$("$cluster/audit" mark)
	log=$(front_mark)

	# Old and new are valid. Then the server presents a certificate of the new authority, and old tokens are no longer
	# valid.
	rotate server add
	eventually 30 published newest_in
	expired=$(date +%s)
	for i in 0 1 2 3; do
		"$cluster/kubelet" $i restart &
		restarting+=($!)
	done
	wait "${restarting[@]}"
	eventually 60 all_tokens_since "$expired" $pids
	eventually 60 all_given newest_in $pids
	rotate server use
	front expired "$expired"
	reconnected $pods
	late_worker c d 2
	running late-c

	# Only the new authority is valid.
	rotate server drop
	eventually 30 published alone_in
	eventually 60 all_looked_at_and_given alone_in $pids
	reconnected $pods
	late_worker e d 3
	running late-e
	eventually 30 domain_field_is d .status.nodesReady 4
	unchanged "$before" 0 1
	[[ $(ours | grep -xF "$pids") == "$pids" ]]
	failed_since "$since" "$audit" "$log" | none
}

# A controller outside of the cluster, which authenticates with a certificate, replaces those in pods.
outside=$(cluster_has outside)
# new_certificate: creates a certificate and its key in a new folder, and prints its path.
new_certificate() {
	local dir
	dir=$(mktemp -d "$outside/..XXXXXX")
	# With this group, the audit log also has its reads.
	rotate client /O=system:serviceaccounts/CN=outside "$dir/client.crt" "$dir/client.key" && echo "$dir"
}
# use FOLDER: replaces both files at once, as volumes do.
use() {
	ln -s "$(basename "$1")" "$outside/..next"
	mv -T "$outside/..next" "$outside/..data"
}
# answer_is FOLDER CODE: the API server answers with this code to a client with the certificate in this folder.
answer_is() {
	(. "$cluster/lib.bash" && . "$cluster/control.bash" && [[ $2 == "$(curl -s -o /dev/null -w '%{http_code}' --cacert "$pki/ca.crt" \
		--cert "$1/client.crt" --key "$1/client.key" "https://$server_address/api")" ]])
}
fabric_policy() { k patch validatingadmissionpolicybinding compute-domains-fabrics --type=merge -p "{\"spec\": {\"validationActions\": [\"$1\"]}}" >/dev/null; }
fabric_writable() { k --as=outside patch "$1" --type=merge -p '{"rack": "tried"}' --dry-run=server >/dev/null; }
# start_outside PID: starts a controller with the environment of this process, which is a controller in a pod.
start_outside() {
	local env
	k create clusterrolebinding outside --user=outside --clusterrole=compute-domains-clusterrole-controller >/dev/null
	k -n "$driver_ns" create rolebinding outside --user=outside --role=compute-domains-role-controller >/dev/null
	# Only the controller's account may write fabric objects, and its name is too long for a certificate.
	fabric_policy Audit
	eventually 30 fabric_writable "$(k get computedomainfabrics -o name | sed -n 1p)"
	mapfile -d '' -t env <"/proc/$1/environ"
	(
		. "$cluster/lib.bash" && . "$cluster/control.bash"
		cat >"$outside/kubeconfig" <<-END
			apiVersion: v1
			kind: Config
			clusters: [{name: test, cluster: {server: "https://$server_address", certificate-authority: $pki/ca.crt}}]
			users: [{name: outside, user: {client-certificate: client.crt, client-key: client.key}}]
			contexts: [{name: test, context: {cluster: test, user: outside}}]
			current-context: test
		END
		spawn "$outside.pid" "$outside.log" env -i "${env[@]}" POD_NAME=outside "$checkout/build/src/controller/compute-domain-controller" \
			-v 4 --kubeconfig "$outside/kubeconfig"
	)
}
outside_logs() { grep -qF "$1" "$outside.log"; }
outside_leads() { [[ $(lease holderIdentity) == outside* ]]; }
nobody_outside() {
	[[ ! -e $outside.pid ]] || (. "$cluster/lib.bash" && stop "$outside.pid")
	rm -rf "$outside" "$outside.log"
	k -n "$driver_ns" delete --ignore-not-found clusterrolebinding,rolebinding outside >/dev/null
	fabric_policy Deny
}

# failure: a client certificate and its CA are replaced -> the controller continues
# bats test_tags=long
@test "a controller's client certificate and its certificate authority are replaced" {
	local old new audit transitions
	mkdir "$outside"
	rotate clients add
	old=$(new_certificate)
	use "$old"
	ln -s ..data/client.crt ..data/client.key "$outside"
	eventually 30 answer_is "$old" 200
	start_outside "$(pids_of_pod "$driver_ns" "$(leader_pod)" compute-domain-controller)"
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	eventually 30 outside_leads
	domain d
	worker a d 0
	running a
	transitions=$(lease leaseTransitions)
	audit=$("$cluster/audit" mark)

	# Old and new are valid.
	rotate clients add
	new=$(new_certificate)
	eventually 30 answer_is "$new" 200
	use "$new"
	eventually 10 outside_logs 'have changed: new connections use them'
	worker b d 1
	running b

	# Only the new one is valid.
	rotate clients drop
	eventually 30 answer_is "$old" 401
	worker c d 2
	running c
	outside_leads
	[[ $(lease leaseTransitions) == "$transitions" ]]
	"$cluster/audit" "$audit" >"$BATS_TEST_TMPDIR/audit"
	awk '($2 == "outside" || $NF == 401) && $NF >= 400' "$BATS_TEST_TMPDIR/audit" | none
	complaints <"$outside.log" | none
}
