# SPDX-License-Identifier: Apache-2.0
# Helpers for tests in which the API server does not answer, or gives answers that the driver must not trust. A .bats
# file loads this after driver.bash.

front() { "$cluster/front" "$@"; }
everything_passes() { front off; }

# state_of_workloads K...: prints everything about the workloads on these nodes that must not change, one item per line. The
# namespace $ns must belong to this test alone.
state_of_workloads() {
	local i
	k -n "$ns" get resourceclaims,resourceclaimtemplates,pods -o json | jq -r '.items[] | select(.metadata.labels.late != "yes") |
		select(.kind != "ResourceClaim" or all(.metadata.ownerReferences[]?; .name | startswith("late") | not)) |
		"\(.kind) \(.metadata.uid) \(.metadata.finalizers) \(.metadata.deletionTimestamp) \([.status.containerStatuses[]?.restartCount])"'
	k get nodes -o json | jq -r --arg l "$uid_label" '.items[] | "\(.metadata.name) \(.metadata.labels[$l])"' | grep -E "^node-($(tr ' ' '|' <<<"$*")) "
	k -n "$driver_ns" get daemonsets,resourceclaimtemplates -o json | jq -r '.items[].metadata | "\(.name) \(.uid) \(.deletionTimestamp)"'
	k -n "$driver_ns" get pods -l app=imex-daemon -o json | jq -r '.items[] |
		"\(.spec.nodeName) \(.metadata.name) \(.metadata.uid) \(.metadata.deletionTimestamp) \([.status.containerStatuses[]?.restartCount])"' |
		grep -E "^node-($(tr ' ' '|' <<<"$*")) "
	for i; do node_files "$i" | sed "s/^/$i /"; done
}

# unchanged BEFORE K...: succeeds if nothing has changed since BEFORE, the output of state_of_workloads; otherwise it prints the
# difference.
unchanged() {
	local before=$1
	shift
	diff <(echo "$before") <(state_of_workloads "$@") || {
		echo "the workloads changed during the test (see the difference above)"
		return 1
	}
}

# labelled K...: these Nodes have the label of a ComputeDomain. The controller writes it some seconds after the rest.
labelled() {
	local i
	for i; do [[ -n $(k get node "node-$i" -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") ]] || return 1; done
}

# late_worker NAME DOMAIN NODE: a worker that state_of_workloads ignores.
late_worker() {
	worker "late-$1" "$2" "$3"
	k -n "$ns" label pod "late-$1" late=yes >/dev/null
}

lease() { k -n "$driver_ns" get leases -o json | jq -r ".items[] | select(.metadata.name | contains(\"controller\")) | .spec.$1"; }
renewed_since() { [[ $(lease renewTime) != "$1" && -n $(leader_pod) ]]; }
answered() { front | awk -v text="$2" '{ n = $1; $1 = ""; if (substr($0, 2) == text) found = n } END { exit found < '"$1"' }'; }

# pages CODE SECONDS BEFORE K...: for this time, every request of a pod gets this page instead of an answer, and the
# workloads on these nodes do not change.
pages() {
	local code=$1 seconds=$2 before=$3
	shift 3
	front "$code"
	for_seconds "$seconds" unchanged "$before" "$@"
	front | grep -E "^[1-9][0-9]* $code$"
	front off
}

# pages_for SECONDS_404 SECONDS_403 SECONDS_503 [PATIENTLY]: two pods run in a ComputeDomain, and the claim of a third
# pod is being prepared. The plugin on the node of the first pod has just started; 10 to 20 s after its start it looks
# for claims that no longer exist. Then the leader is killed.
pages_for() {
	local before plugin other count renewed begin
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
	eventually 30 condition_is d PeersConnected True
	eventually 20 labelled 0 1
	plugin=$(plugin_pod 0)
	count=$(restarts "$plugin")
	kill_in_pod "$driver_ns" "$plugin" compute-domain-kubelet-plugin
	eventually 30 restarted "$plugin" "$count"
	eventually 20 plugin_asks "$plugin"
	front 404 "$plugin" get resourceclaims # set at once, because the steps below may take longer than those 10 s
	before=$(state_of_workloads 0 1)
	late_worker c d 2
	eventually 20 allocated late-c
	begin=$SECONDS
	front 404
	kill_in_pod "$driver_ns" "$(leader_pod)" compute-domain-controller
	other=$(plugin_pod 3)
	count=$(restarts "$other")
	kill_in_pod "$driver_ns" "$other" compute-domain-kubelet-plugin
	eventually 30 answered 1 "404 $plugin get resourceclaims"
	eventually 30 restarted "$other" "$count"
	for_seconds $((begin + $1 - SECONDS)) unchanged "$before" 0 1
	unchanged "$before" 0 1
	# The plugin cannot know whether its devices are published.
	[[ $(plugin_ready "$other") == false ]]
	front off
	eventually 60 plugin_asks "$other"
	if [[ -z ${4:-} ]]; then
		# The kubelet's call may have failed. The kubelet would retry it only after 60 to 90 s.
		k -n "$ns" delete pod late-c >/dev/null
		late_worker c d 2
	fi
	pages 403 "$2" "$before" 0 1
	renewed=$(lease renewTime)
	pages 503 "$3" "$before" 0 1
	eventually 30 renewed_since "$renewed"
	late_worker e d 3
	running late-c 100
	running late-e 100
	unchanged "$before" 0 1
	eventually 30 domain_field_is d .status.nodesReady 4
	eventually 30 condition_is d PeersConnected True
	# A missing answer does not count as a rejected write.
	prints_nothing k -n "$ns" get events --field-selector reason=WriteFailed -o name
	has_channel a
	has_channel b
	k -n "$ns" delete pods --all --wait=false >/dev/null
	eventually 60 labels_gone
}
# plugin_asks POD: the plugin is registered, so the API server has answered it.
plugin_asks() { [[ $(plugin_ready "$1") == true ]]; }
plugin_ready() { k -n "$driver_ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].ready}'; }

# stale_standby VERBS SECONDS: a standby controller that may not VERBS claims becomes the leader without having seen a
# claim. For this time it still gets no claims.
stale_standby() {
	local verbs=$1 seconds=$2 before leader standby
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	eventually 30 has_leader
	leader=$(leader_pod)
	standby=$(k -n "$driver_ns" get pods -l app=compute-domain-controller -o json |
		jq -r --arg leader "$leader" '.items[].metadata.name | select(. != $leader)')
	[[ $(wc -w <<<"$standby") == 1 ]]
	front refuse "$standby" "$verbs" resourceclaims
	domain d
	worker a d 0
	running a
	eventually 30 condition_is d Ready True
	eventually 20 labelled 0
	before=$(state_of_workloads 0)
	k -n "$driver_ns" delete pod "$leader" --wait=false >/dev/null
	leads() { [[ $(leader_pod) == "$standby" ]]; }
	eventually 30 leads
	for_seconds "$seconds" unchanged "$before" 0
	leads
	front off
	# The new leader catches up: it acts on pods that started and on pods that ended.
	worker b d 1
	running b 90
	labelled 0
	has_channel a
	k -n "$ns" delete pod a b --wait=false >/dev/null
	eventually 60 labels_gone
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
}
# first_start NODES SECONDS_HUNG LIMIT: the controllers start for the first time, in a cluster with NODES additional
# Nodes, which all need a label. For the first SECONDS_HUNG, no request that writes a label gets an answer. The first
# leader keeps the lease, and all Nodes have their label within LIMIT seconds.
first_start() {
	local nodes=$1 hung=$2 limit=$3 begin
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	k -n "$driver_ns" delete leases --all >/dev/null
	"$cluster/service" controller-manager stop
	"$cluster/pretend" nodes "$nodes"
	echo "$nodes Nodes created"
	front hang '*-controller' patch nodes
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	"$cluster/service" controller-manager start
	eventually 60 answered 32 "hang *-controller patch nodes"
	"$cluster/service" controller-manager stop
	begin=$SECONDS
	local leader
	leader=$(lease holderIdentity)
	for_seconds "$hung" led_by "$leader"
	front off
	all_labelled() {
		led_by "$leader" || return 2
		[[ $(k get nodes -l pretended=yes,nvidia.com/gpu.clique -o name | wc -l) == "$nodes" ]]
	}
	eventually "$limit" all_labelled
	led_by "$leader"
	echo "all $nodes Nodes labelled after $((SECONDS - begin)) s" | tee /dev/stderr
}
# led_by IDENTITY: this controller is the first holder of the lease and renewed it in time, and no controller was
# restarted.
led_by() {
	k -n "$driver_ns" get leases -o json | jq -e --arg id "$1" '.items[] | select(.metadata.name | contains("controller")) | .spec |
		.holderIdentity == $id and .leaseTransitions == 0' >/dev/null || { echo "the lease has passed from $1 to $(lease holderIdentity)"; return 1; }
	[[ $(k -n "$driver_ns" get pods -l app=compute-domain-controller -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}') =~ ^[0\ ]*$ ]]
}
# remove_pretended: deletes what first_start created, and starts the controller manager again.
remove_pretended() {
	front off
	"$cluster/pretend" gone
	"$cluster/service" controller-manager start
}
