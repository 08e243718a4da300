#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The annotation resource.nvidia.com/start-gate with a claim that pods on several nodes share. The hosts run IMEX.

load ../cluster/driver
load ../cluster/channels

setup_file() {
	"$cluster/up" 4
	"$cluster/host-imex" all start
	with_new_channels
}
teardown_file() {
	k delete resourceslice compute-domain.nvidia.com-shared --ignore-not-found >/dev/null
	"$cluster/host-imex" all stop
}
setup() { ns_begin; }
teardown() { ns_end; }

message_has() { [[ $(condition d StartGateOpen message) == *"$1"* ]]; }
on_node() { claims_pod "$1" "nodeSelector: {kubernetes.io/hostname: node-$2}" channel=d; }

# failure: a node behind a start gate is late, and the pods share a claim -> they wait, and start together
@test "pods that share a claim wait for the start gate, and start together" {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: d, annotations: {resource.nvidia.com/start-gate: "true"}}
spec: {numNodes: 2, channel: {resourceClaim: {name: d}}}
END
	eventually 30 condition_is d SharedClaimAvailable True
	on_node a 0
	eventually 30 message_has "1 of 2 nodes are connected. 1 more must join"
	# The node still counts after the kubelet's time-out.
	eventually 70 event_contains Pod/a "the pod waits for the start gate of ComputeDomain '$ns/d': 1 of 2 nodes"
	message_has "1 of 2 nodes are connected. 1 more must join"
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.phase}') == Pending ]]
	on_node b 1
	running a 20
	running b 20
	[[ $(channels_of a) == "$(channels_of b)" ]]
	k -n "$ns" delete pods --all >/dev/null
	eventually 60 condition_is d StartGateOpen False
}
