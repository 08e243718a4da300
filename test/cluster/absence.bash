# SPDX-License-Identifier: Apache-2.0
# For tests of what happens while the API server's word is not to be had, or not to be trusted; a .bats file loads it after driver.

front() { "$cluster/front" "$@"; }
everything_passes() { front off; }

# standing K...: all that must stay as it is of the workloads on these nodes, a line each. The namespace of the test is theirs alone.
standing() {
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

# untouched BEFORE K...: what stood stands; else the difference.
untouched() {
	local before=$1
	shift
	diff <(echo "$before") <(standing "$@") || {
		echo "changed in the meantime (see above)"
		return 1
	}
}

# labelled K...: people see on these Nodes that they are in a ComputeDomain; it is written some seconds after the rest.
labelled() {
	local i
	for i; do [[ -n $(k get node "node-$i" -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") ]] || return 1; done
}

# late_worker NAME DOMAIN NODE: a worker that standing does not count.
late_worker() {
	worker "late-$1" "$2" "$3"
	k -n "$ns" label pod "late-$1" late=yes >/dev/null
}

lease() { k -n "$driver_ns" get leases -o json | jq -r ".items[] | select(.metadata.name | contains(\"controller\")) | .spec.$1"; }
renewed_since() { [[ $(lease renewTime) != "$1" && -n $(leader_pod) ]]; }
answered() { front | awk -v text="$2" '{ n = $1; $1 = ""; if (substr($0, 2) == text) found = n } END { exit found < '"$1"' }'; }

# pages CODE SECONDS BEFORE K...: so long each request of a pod gets this page, and what stands on these nodes is not touched.
pages() {
	local code=$1 seconds=$2 before=$3
	shift 3
	front "$code"
	for_seconds "$seconds" untouched "$before" "$@"
	front | grep -E "^[1-9][0-9]* $code$"
	front off
}

# pages_for SECONDS_404 SECONDS_403 SECONDS_503 [PATIENTLY]: two pods run in a domain, the claim of a third is
# being prepared, the plugin of one's node has just been started, which looks for claims that are gone 10 to
# 20 s later, and the leader is killed.
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
	front 404 "$plugin" get resourceclaims # at once: what follows may take longer than those seconds
	before=$(standing 0 1)
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
	for_seconds $((begin + $1 - SECONDS)) untouched "$before" 0 1
	untouched "$before" 0 1
	# It cannot know whether its devices are published.
	[[ $(plugin_ready "$other") == false ]]
	front off
	eventually 60 plugin_asks "$other"
	if [[ -z ${4:-} ]]; then
		# Its kubelet, whose call may have failed, would look at it again 60 to 90 s later.
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
	untouched "$before" 0 1
	eventually 30 domain_field_is d .status.nodesReady 4
	eventually 30 condition_is d PeersConnected True
	# That nobody answered is no write that was refused.
	[[ -z $(k -n "$ns" get events --field-selector reason=WriteFailed -o name) ]]
	has_channel a
	has_channel b
	k -n "$ns" delete pods --all --wait=false >/dev/null
	eventually 60 labels_gone
}
# plugin_asks POD: it is registered, so the API server has answered it.
plugin_asks() { [[ $(plugin_ready "$1") == true ]]; }
plugin_ready() { k -n "$driver_ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].ready}'; }

# stale_standby VERBS SECONDS: the one controller that may not VERBS claims has seen none of them when it becomes leader, and stays that
# ignorant for so long.
stale_standby() {
	local verbs=$1 seconds=$2 before leader standby
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	eventually 30 somebody_leads
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
	before=$(standing 0)
	k -n "$driver_ns" delete pod "$leader" --wait=false >/dev/null
	leads() { [[ $(leader_pod) == "$standby" ]]; }
	eventually 30 leads
	for_seconds "$seconds" untouched "$before" 0
	leads
	front off
	# It catches up with what it has missed, in both directions.
	worker b d 1
	running b 90
	labelled 0
	has_channel a
	k -n "$ns" delete pod a b --wait=false >/dev/null
	eventually 60 labels_gone
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
}
# first_start NODES SECONDS_HUNG LIMIT: the controllers start for the first time in a cluster of so many more nodes, each of which has to be
# labelled; for the first seconds none of the calls that do so is answered. The first leader stays, and all are labelled within the limit.
first_start() {
	local nodes=$1 hung=$2 limit=$3 begin
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	k -n "$driver_ns" delete leases --all >/dev/null
	"$cluster/service" controller-manager stop
	"$cluster/pretend" nodes "$nodes"
	echo "$nodes nodes made"
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
	echo "$nodes nodes labelled after $((SECONDS - begin)) s" | tee /dev/stderr
}
# led_by IDENTITY: it has the lease, nobody had it before, it has been renewed in time, and no controller was restarted.
led_by() {
	k -n "$driver_ns" get leases -o json | jq -e --arg id "$1" '.items[] | select(.metadata.name | contains("controller")) | .spec |
		.holderIdentity == $id and .leaseTransitions == 0' >/dev/null || { echo "the lease has passed from $1 to $(lease holderIdentity)"; return 1; }
	[[ $(k -n "$driver_ns" get pods -l app=compute-domain-controller -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}') =~ ^[0\ ]*$ ]]
}
# pretended_gone: what first_start has made, and the controller manager is back.
pretended_gone() {
	front off
	"$cluster/pretend" gone
	"$cluster/service" controller-manager start
}
