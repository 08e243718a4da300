#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# After a failure everything recovers, or a report names what is needed. Each test is named after its failure. For
# failures of the daemons see daemon_faults.bats.

load ../cluster/driver
load ../cluster/unprepared
load ../cluster/domains

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || repair
	ns_end
}

# Repairs what a test that failed halfway may have left broken.
repair() {
	"$cluster/apiserver" start
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	knob 0 CRASH_AFTER_MS= REFUSE_START= START_DELAY_MS=
	"$cluster/gpu" 2 FABRIC_STATE=3
	"$cluster/clique" 3 1
	eventually 60 clique_label_is 2 1 || true
	eventually 60 clique_label_is 3 1 || true
}

compact_etcd() {
	local etcd=http://127.0.0.1:23790/v3/kv
	curl -sf "$etcd/compaction" -d "{\"revision\": $(curl -sf "$etcd/range" -d '{"key": "eA=="}' | jq .header.revision), \"physical\": true}" >/dev/null
}


# failure: the leader is killed while a ComputeDomain forms -> a standby takes over, and it forms
# bats test_tags=matrix
@test "the leading controller is killed while a ComputeDomain forms" {
	domain d
	worker a d 0
	kill_in_pod "$driver_ns" "$(leader_pod)" compute-domain-controller
	worker b d 1
	running a 240 # the dead leader's lease has to expire, and then the kubelet has to retry
	running b 240
	eventually 30 domain_field_is d .status.nodesReady 2
}

# failure: the controllers are down while a pod ends -> its node leaves when they are back
@test "the controllers are down while a pod ends, and its node leaves the ComputeDomain when they are back" {
	domain d
	worker a d 0
	running a
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	k -n "$ns" delete pod a
	assigned_are d "node-0 0,"
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2
	eventually 60 assigned_are d ""
	eventually 30 daemons_idle 4
	eventually 30 labels_gone
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s
}

# failure: the plugin is killed while a Prepare waits -> the repeated Prepare succeeds [plugin]
# bats test_tags=matrix
@test "the kubelet plugin is killed while a Prepare waits" {
	plugin_killed_in_prepare
	eventually 60 condition_is d Ready True
	# A kubelet retries an interrupted call only after up to 90 s, so the test makes the call.
	[[ $("$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" "$plugin_dir/dra.sock" prepare "$ns" "$(claim_of a)" "$(claim_uid a)") == "channel-0 "* ]]
	checkpoint_has 0 "$(claim_uid a)" PrepareCompleted
	claim_file 0 "$(claim_uid a)"
}

# failure: nvidia-imex crashes in a loop -> the ComputeDomain reports it, restarts are delayed, and it
#   recovers [imex]
@test "nvidia-imex crashes in a loop: the ComputeDomain reports it, restarts are delayed, and it recovers" {
	domain d
	worker a d 0
	running a
	local pod before starts
	pod=$(daemon_pod 0) before=$(daemon_identity 0)
	knob 0 CRASH_AFTER_MS=50
	kill_in_pod "$driver_ns" "$pod" nvidia-imex
	eventually 60 ready_message_has d "signal 11"
	[[ $(condition d Ready status) == False && $(condition d Ready reason) == NodeFailing ]]
	eventually 20 event_contains "ResourceClaim/$(claim_of a)" "the channel is in use, but is not served"
	eventually 20 event_contains ComputeDomain/d node-0
	# It does not start, for another reason.
	knob 0 CRASH_AFTER_MS= REFUSE_START="Failed to allocate Imex session, status = NV_ERR_IN_USE"
	eventually 60 ready_message_has d "another nvidia-imex on this node owns the driver's only IMEX session"
	# Each start logs this line: the first one, a crash and a refusal at least. The pauses between starts double from
	# 0.1 s to 30 s, so the first minute has about ten starts, and each later minute has two.
	starts=$(k -n "$driver_ns" logs "$pod" --since=3m | grep -c "IMEX Log initializing")
	((starts >= 3 && starts < 20))
	knob 0 REFUSE_START=
	eventually 60 condition_is d Ready True
	[[ $(daemon_identity 0) == "$before" ]]
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

# failure: the API server is down for some seconds -> Prepare waits, and Unprepare succeeds [api-server]
# bats test_tags=matrix
@test "the API server is down for some seconds while claims are prepared and unprepared" {
	server_stops_in_prepare
	server_is_back 240 # within the kubelet's time-out of 45 s, or at its next retry
}

# failure: watches are closed and their history is compacted -> everything continues after a list [api-server]
@test "watches are closed, and the versions that they could resume from are compacted (410)" {
	domain d
	worker a d 0
	running a
	"$cluster/apiserver" kill
	compact_etcd
	"$cluster/apiserver" start
	worker b d 1
	running b 240 # the lease may be lost twice, and then the kubelet has to retry
	eventually 60 domain_field_is d .status.nodesReady 2
	eventually 60 condition_is d PeersConnected True
	k -n "$ns" delete pod a b
	eventually 60 daemons_idle 4
}

# failure: the driver's objects are deleted by hand -> they are created again, and no IMEX ends
@test "the daemons' DaemonSet and claim template and a ComputeDomain's claim template are deleted by hand: they are created again, and no IMEX ends" {
	domain d
	worker before d 1
	running before
	local pid
	pid=$(imex_pid 1)
	k -n "$driver_ns" delete daemonset,resourceclaimtemplate compute-domain-daemon --wait=false
	k -n "$ns" delete resourceclaimtemplate d --wait=false
	eventually 90 daemons_current
	[[ $(imex_pid 1) == "$pid" ]]
	worker a d 0
	running a 90
	[[ $(imex_pid 1) == "$pid" ]]
	k -n "$driver_ns" get resourceclaimtemplate compute-domain-daemon >/dev/null
	k -n "$ns" delete pods --all >/dev/null
	eventually 60 daemons_idle 4
}

# failure: a pod is deleted while its claim is prepared -> the next pod gets the channel [plugin]
@test "a pod is deleted while its claim is prepared: the channel is free for the next pod" {
	domain d
	knob 0 START_DELAY_MS=600000
	worker a d 0
	eventually 20 allocated a
	eventually 30 checkpoint_has 0 "$(claim_uid a)" PrepareStarted
	eventually 30 daemon_serves 0 d
	k -n "$ns" delete pod a
	knob 0 START_DELAY_MS=
	eventually 60 daemons_idle 4
	worker b d 0
	running b 90
	has_channel b
	[[ $("$cluster/node" 0 cat "$plugin_dir/checkpoint.json" | jq '[.v2.preparedClaims[] | select(.checkpointState == "PrepareCompleted")] | length') == 2 ]]
}

# failure: a node has no NVLink fabric -> the pod runs without a channel, and an Event reports it [host]
@test "a node without an NVLink fabric: the pod runs without a channel, and an Event reports it" {
	"$cluster/gpu" 2 FABRIC_STATE=0
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
	no_clique() { k get resourceslices -o json | jq -e '[.items[] | select(.spec.nodeName == "node-2") | .spec.devices[] | .attributes | has("cliqueID")] == [false, false]' >/dev/null; }
	eventually 30 no_clique
	domain d
	worker a d 2
	running a
	has_no_channel a
	eventually 20 event_contains Pod/a "without"
	eventually 20 domain_field_is d '.status.nodes[0].index' -1
	"$cluster/gpu" 2 FABRIC_STATE=3
	k -n "$ns" delete pod a
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s
	has_clique() { ! no_clique; }
	eventually 30 has_clique
	eventually 60 daemons_idle 4
}

# failure: a ComputeDomain spans two partitions -> each has its own IMEX domain and indices [daemon]
# failure: a node changes its partition under a pod -> its daemon follows after the pod [daemon]
@test "a ComputeDomain in two partitions, and a node that changes its partition while it is used: its label follows at once, its daemon after the pod" {
	"$cluster/clique" 3 2
	k -n "$driver_ns" delete pod "$(plugin_pod 3)" # the plugin looks when it starts
	eventually 60 clique_label_is 3 2
	domain d
	worker a d 0
	worker b d 3
	running a
	running b 90
	eventually 20 domain_field_is d .status.nodesReady 2
	[[ $(domain_field d .status.cliques) == 2 && $(domain_field d '.status.nodes[*].index') == "0 0" ]]
	local pid before
	pid=$(imex_pid 3)
	before=$(daemon_field 3 .metadata.uid)
	"$cluster/clique" 3 1
	eventually 60 clique_label_is 3 1 # nothing announces it: the plugin looks every 30 s
	# The daemon in use keeps its index, by which its peers know it, and the status reports that its node is in another clique now.
	eventually 20 ready_message_has d "reports clique ID"
	[[ $(domain_field d .status.cliques) == 2 && $(imex_pid 3) == "$pid" ]]
	k -n "$ns" delete pod b >/dev/null
	worker c d 3
	running c 120
	eventually 60 domain_field_is d .status.cliques 1
	eventually 60 domain_field_is d .status.nodesReady 2
	[[ $(domain_field d '.status.nodes[*].index') == "0 1" && $(daemon_field 3 .metadata.uid) == "$before" ]]
	eventually 60 condition_is d PeersConnected True
}
