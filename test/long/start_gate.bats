#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The annotation resource.nvidia.com/start-gate: pods start when all nodes of the ComputeDomain are connected.

load ../cluster/driver

gate=resource.nvidia.com/start-gate
setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	reconnects ""
	ns_end
}

# reconnects MS: how long IMEX of each node waits until it tries again to connect. Otherwise that is 15, 31 and 62 s.
reconnects() {
	local i
	for i in 0 1 2 3; do knob "$i" RECONNECT_MS="$1"; done
}

gated() {
	domain d "$1"
	k -n "$ns" annotate computedomain d "$gate=${2:-true}" >/dev/null
}
phases() { k -n "$ns" get pods -o jsonpath='{range .items[*]}{.status.phase}{"\n"}{end}' | sort -u | tr '\n' ' '; }
message_has() { [[ $(condition d StartGateOpen message) == *"$1"* ]]; }

# failure: a node behind a start gate is late -> no pod starts before, and then all within seconds
@test "with a start gate, no pod starts before all nodes are connected, and a replaced pod does not wait" {
	local i start
	reconnects 2000
	gated 4
	for i in 0 1 2; do worker "w$i" d "$i"; done
	eventually 30 message_has "3 of 4 nodes are connected. 1 more must join"
	condition_is d StartGateOpen False
	# The kubelet reports a failed Prepare after 45 s.
	eventually 70 event_contains Pod/w0 "the pod waits for the start gate of ComputeDomain '$ns/d': 3 of 4 nodes are connected"
	[[ $(phases) == "Pending " ]]
	worker w3 d 3
	start=$SECONDS
	for i in 0 1 2 3; do running "w$i" 40; done # a kubelet by itself retries after 60 to 90 s
	echo "all pods run $((SECONDS - start)) s after the last one was created"
	condition_is d StartGateOpen True
	eventually 10 event_contains ComputeDomain/d "Enough nodes were connected"
	# A pod has completed, and another one is replaced: three nodes remain.
	k -n "$ns" delete pod w3 >/dev/null
	eventually 30 domain_field_is d .status.nodesReady 3
	k -n "$ns" delete pod w0 >/dev/null
	worker w0 d 0
	running w0 30
	# The next workload waits again.
	k -n "$ns" delete pods --all >/dev/null
	eventually 30 condition_is d StartGateOpen False
	worker next d 1
	eventually 30 message_has "1 of 4 nodes are connected"
	[[ $(phases) == "Pending " ]]
}

# failure: a start gate has no number of nodes -> an Event reports it, and the pods wait
@test "a start gate without spec.numNodes is reported, and its removal starts the pods" {
	gated 0
	worker w d 0
	eventually 20 event_contains ComputeDomain/d "needs the number of nodes, but spec.numNodes is 0"
	[[ $(condition d StartGateOpen reason) == StartGateInvalid ]]
	eventually 30 domain_field_is d .status.nodesReady 1
	[[ $(phases) == "Pending " ]]
	k -n "$ns" annotate computedomain d "$gate-" >/dev/null
	running w 40
	eventually 10 condition_is d StartGateOpen ""
}
