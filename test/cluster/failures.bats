#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What breaks heals, or says what it needs. Each test is named after its failure.

load driver
load unprepared

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || mend
	ns_end
}

# What a test that failed halfway may have left broken.
mend() {
	"$cluster/apiserver" start
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	knob 0 CRASH_AFTER_MS= REFUSE_START= START_DELAY_MS=
	"$cluster/kubelet" 1 start
	"$cluster/gpu" 2 FABRIC_STATE=3
	"$cluster/clique" 3 1
	eventually 60 clique_label_is 2 1 || true
	eventually 60 clique_label_is 3 1 || true
}

compact_etcd() {
	local etcd=http://127.0.0.1:23790/v3/kv
	curl -sf "$etcd/compaction" -d "{\"revision\": $(curl -sf "$etcd/range" -d '{"key": "eA=="}' | jq .header.revision), \"physical\": true}" >/dev/null
}
condition_says() { [[ $(condition "$1" Ready message) == *"$2"* ]]; }

# admin_worker NAME DOMAIN-UID NODE: a pod with admin access to a node's channel.
admin_worker() { claimed_by_hand "$1" "$(config "$2")" "" "$3" ", adminAccess: true"; }
# imex_ctl POD ARGS...: ask the nvidia-imex of a daemon pod.
imex_ctl() {
	local pod=$1
	shift
	k -n "$driver_ns" exec "$pod" -- nvidia-imex-ctl -c /imexd/imexd.cfg "$@"
}

# bats test_tags=matrix
@test "the leading controller is killed while a domain forms" {
	domain d
	worker a d 0
	kill_in_pod "$driver_ns" "$(leader_pod)" compute-domain-controller
	worker b d 1
	running a 240 # the dead leader's lease, and then the kubelet's next look at the pod
	running b 240
	eventually 30 domain_field_is d .status.nodesReady 2
}

@test "the controllers are down while a pod goes, and its label goes when they are back" {
	domain d
	worker a d 0
	running a
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	k -n "$ns" delete pod a
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2
	eventually 60 labels_gone
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s
}

# bats test_tags=matrix
@test "the kubelet plugin is killed while a Prepare waits" {
	plugin_killed_in_prepare
	eventually 60 condition_is d Ready True
	# A kubelet whose call broke off asks again only at its next look at the pod, after up to 90 s: somebody asks
	# in its place.
	[[ $("$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" "$plugin_dir/dra.sock" prepare "$ns" "$(claim_of a)" "$(claim_uid a)") == "channel-0 "* ]]
	checkpoint_has 0 "$(claim_uid a)" PrepareCompleted
	claim_file 0 "$(claim_uid a)"
}

# bats test_tags=matrix
@test "a daemon is killed: its container comes back with the same index and the workload runs on" {
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
	eventually 20 domain_field_is d .status.nodesReady 2
	local pod index
	pod=$(daemon_pod d 0)
	index=$(domain_field d '.status.nodes[?(@.name=="node-0")].index')
	kill_in_pod "$driver_ns" "$pod" compute-domain-daemon
	eventually 60 restarted "$pod" 0
	eventually 60 domain_field_is d .status.nodesReady 2
	[[ $(domain_field d '.status.nodes[?(@.name=="node-0")].index') == "$index" ]]
	has_channel a
}

@test "nvidia-imex crashes once and is started again" {
	domain d
	worker a d 0
	running a
	local pod before
	pod=$(daemon_pod d 0)
	before=$(pids_of_pod "$driver_ns" "$pod" nvidia-imex)
	another() { local now; now=$(pids_of_pod "$driver_ns" "$pod" nvidia-imex); [[ -n $now && $now != "$before" ]]; }
	serves() { [[ $(imex_ctl "$pod" -q) == READY ]]; }
	kill_in_pod "$driver_ns" "$pod" nvidia-imex
	eventually 30 another
	eventually 30 serves
	eventually 30 daemon_is_ready "$pod"
	[[ $(restarts "$pod") == 0 ]]
}

@test "nvidia-imex crashes in a loop: it is said, restarts are held back, and it heals" {
	domain d
	worker a d 0
	running a
	local pod
	pod=$(daemon_pod d 0)
	knob 0 CRASH_AFTER_MS=50
	kill_in_pod "$driver_ns" "$pod" nvidia-imex
	eventually 60 condition_says d "signal 11"
	[[ $(condition d Ready status) == False && $(condition d Ready reason) == NodeFailing ]]
	eventually 20 event_says "ResourceClaim/$(claim_of a)" "the channel is in use, but is not served"
	eventually 20 event_says ComputeDomain/d node-0
	# It does not start at all, for a reason of its own.
	knob 0 CRASH_AFTER_MS= REFUSE_START="Failed to allocate Imex session, status = NV_ERR_IN_USE"
	eventually 60 condition_says d "another nvidia-imex on this node owns the driver's only IMEX session"
	# With pauses that double, from 0.1 s to 30 s, a minute has about ten starts.
	(($(k -n "$driver_ns" logs "$pod" | grep -c "IMEX daemon is down") < 20))
	knob 0 REFUSE_START=
	eventually 60 condition_is d Ready True
	[[ $(restarts "$pod") == 0 ]]
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

# bats test_tags=matrix
@test "a daemon pod is deleted: its replacement has another address and peers follow" {
	domain d
	worker a d 0
	worker b d 1
	running a
	running b
	eventually 20 condition_is d PeersConnected True
	local pod before peer
	pod=$(daemon_pod d 0)
	peer=$(daemon_pod d 1)
	before=$(domain_field d '.status.nodes[?(@.name=="node-0")].ipAddress')
	k -n "$driver_ns" delete pod "$pod"
	ip_changed() { local now; now=$(domain_field d '.status.nodes[?(@.name=="node-0")].ipAddress'); [[ -n $now && $now != "$before" ]]; }
	eventually 60 ip_changed
	eventually 60 domain_field_is d .status.nodesReady 2
	# In the words of node-1's own nvidia-imex: it is connected to node-0's id, and whom it finds by that name is the replacement.
	follows() {
		imex_ctl "$peer" -N -j | jq -e --arg me "$(domain_field d '.status.nodes[?(@.name=="node-1")].index')" \
			--arg other "$(domain_field d '.status.nodes[?(@.name=="node-0")].index')" --arg pod "$(daemon_pod d 0)" \
			'.nodes[$me].connections[$other].status == "CONNECTED" and .nodes[$other].hostName == $pod' >/dev/null
	}
	eventually 60 follows
	eventually 60 condition_is d PeersConnected True
	[[ $(daemon_pod d 1) == "$peer" && $(restarts "$peer") == 0 ]]
}

# bats test_tags=matrix
@test "the API server is gone for some seconds while claims are prepared and unprepared" {
	server_stops_in_prepare
	server_is_back 240 # within its patience of 45 s, or at its next look at the pod
}

@test "watches are closed and what they could resume from is forgotten (410)" {
	domain d
	worker a d 0
	running a
	"$cluster/apiserver" kill
	compact_etcd
	"$cluster/apiserver" start
	worker b d 1
	running b 240 # the lease may be lost twice, and then comes the kubelet's next look at the pod
	eventually 60 domain_field_is d .status.nodesReady 2
	eventually 60 condition_is d PeersConnected True
	k -n "$ns" delete pod a b
	eventually 60 labels_gone
}

@test "a DaemonSet and a claim template deleted by hand come back" {
	domain d
	eventually 20 k -n "$ns" get resourceclaimtemplate d
	local uid
	uid=$(domain_uid d)
	eventually 20 k -n "$driver_ns" get daemonset "computedomain-daemon-$uid"
	k -n "$driver_ns" delete daemonset "computedomain-daemon-$uid" --wait=false
	k -n "$ns" delete resourceclaimtemplate d --wait=false
	worker a d 0
	running a 90
}

# bats test_tags=matrix
@test "two ComputeDomains want one node: why the second waits is said" {
	since 34 "a claim with admin access is behind a gate before 1.34"
	domain first
	domain second
	worker a first 0
	running a
	# A claim with admin access gets the channel beside the first's, but no daemon: it moves no node from one domain to another.
	k label namespace "$ns" resource.kubernetes.io/admin-access=true >/dev/null
	admin_worker watcher "$(domain_uid second)" 0
	# The scheduler says it of a claim without: the channel is taken.
	worker b second 0
	eventually 30 event_says Pod/b "cannot allocate all claims"
	eventually 70 event_says Pod/watcher "the IMEX daemon of another ComputeDomain has not left this node yet"
	k -n "$ns" delete pod watcher a --wait=false
	running b 90
	has_channel b
	[[ $(k get node node-0 -o "jsonpath={.metadata.labels.resource\.nvidia\.com/computeDomain}") == "$(domain_uid second)" ]]
	eventually 30 condition_is second Ready True
}

@test "a pod is deleted while its claim is prepared: the channel is free for the next" {
	domain d
	knob 0 START_DELAY_MS=600000
	worker a d 0
	eventually 20 allocated a
	eventually 30 daemon_pod_runs d 0
	k -n "$ns" delete pod a
	knob 0 START_DELAY_MS=
	eventually 60 daemon_pods_gone
	worker b d 0
	running b 90
	has_channel b
	[[ $("$cluster/node" 0 cat "$plugin_dir/checkpoint.json" | jq '[.v2.preparedClaims[] | select(.checkpointState == "PrepareCompleted")] | length') == 2 ]]
}

@test "a node without fabric: the pod runs without a channel and an Event says so" {
	"$cluster/gpu" 2 FABRIC_STATE=0
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
	no_clique() { k get resourceslices -o json | jq -e '[.items[] | select(.spec.nodeName == "node-2") | .spec.devices[] | .attributes | has("cliqueID")] == [false, false]' >/dev/null; }
	eventually 30 no_clique
	domain d
	worker a d 2
	running a
	has_no_channel a
	eventually 20 event_says Pod/a "without"
	eventually 20 domain_field_is d '.status.nodes[0].index' -1
	"$cluster/gpu" 2 FABRIC_STATE=3
	k -n "$ns" delete pod a
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
	has_clique() { ! no_clique; }
	eventually 30 has_clique
}

@test "two cliques in one ComputeDomain, and a node that changes its clique while it runs: label and daemon follow" {
	"$cluster/clique" 3 2
	k -n "$driver_ns" delete pod "$(plugin_pod 3)" # which looks when it starts
	eventually 60 clique_label_is 3 2
	domain d
	worker a d 0
	worker b d 3
	running a
	running b
	eventually 20 domain_field_is d .status.nodesReady 2
	[[ $(domain_field d .status.cliques) == 2 && $(domain_field d '.status.nodes[*].index') == "0 0" ]]
	"$cluster/clique" 3 1
	eventually 60 clique_label_is 3 1 # nothing announces it: the plugin looks every 30 s
	# The daemon that runs keeps its id, for its peers know it by that, and it is said that its node is elsewhere now. Its replacement follows.
	local pod
	pod=$(daemon_pod d 3)
	eventually 20 condition_says d "claims clique"
	[[ $(domain_field d .status.cliques) == 2 && $(restarts "$pod") == 0 ]]
	k -n "$driver_ns" delete pod "$pod"
	eventually 60 domain_field_is d .status.cliques 1
	eventually 60 domain_field_is d .status.nodesReady 2
	[[ $(domain_field d '.status.nodes[*].index') == "0 1" ]]
	eventually 60 condition_is d PeersConnected True
}

@test "the kubelet is restarted under a running workload" {
	domain d
	worker a d 1
	running a
	"$cluster/kubelet" 1 stop
	"$cluster/kubelet" 1 start
	k wait --for=condition=Ready node/node-1 --timeout=60s
	eventually 30 has_channel a # the kubelet has to find its pods again
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	k -n "$ns" delete pod a
	eventually 60 labels_gone
}

# Last, because what it sets the next installation takes back.
# bats test_tags=matrix
@test "a chart upgrade under a running workload restarts no daemon" {
	domain d
	worker a d 0
	running a
	local pod before
	pod=$(daemon_pod d 0)
	before=$(k -n "$driver_ns" get pod "$pod" -o jsonpath='{.metadata.uid}')
	with_driver 4 --set logVerbosity=5
	worker b d 1
	running b
	eventually 30 domain_field_is d .status.nodesReady 2
	[[ $(k -n "$driver_ns" get pod "$(daemon_pod d 0)" -o jsonpath='{.metadata.uid}{.status.containerStatuses[0].restartCount}') == "${before}0" ]]
}
