#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The annotation resource.nvidia.com/start-gate with a claim that pods on several nodes share. The hosts run IMEX.

load ../cluster/driver
load ../cluster/channels

setup_file() { channels_begin; }
teardown_file() { channels_end; }
setup() { ns_begin; }
teardown() { ns_end; }

message_has() { [[ $(condition d StartGateOpen message) == *"$1"* ]]; }
# gated_claim NODES: a ComputeDomain with a shared claim and a start gate for this number of nodes.
gated_claim() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: d, annotations: {resource.nvidia.com/start-gate: "true"}}
spec: {numNodes: $1, channel: {resourceClaim: {name: d}}}
END
	eventually 30 condition_is d SharedClaimAvailable True
}
# asked: prints the pods for which a plugin asked the kubelet to retry.
asked() { k -n "$ns" get pods -o json | jq -r '.items[].metadata | select(.annotations["resource.nvidia.com/retry-prepare"]).name'; }
on_node() { claims_pod "$1" "nodeSelector: {kubernetes.io/hostname: node-$2}" channel=d; }

# failure: a node behind a start gate is late, and the pods share a claim -> they wait, and start together
@test "pods that share a claim wait for the start gate, and start together" {
	gated_claim 2
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

# failure: the Prepares of a claim with more than 16 pods fail -> the plugins ask for a retry in time
@test "18 pods that share a claim fail at the start gate, and start within seconds when it opens" {
	local i account audit
	account=$(k -n "$driver_ns" get serviceaccounts -o name | sed -n 's|^serviceaccount/\(.*-kubeletplugin\)$|\1|p')
	k -n "$ns" create role list-pods --verb=list --resource=pods >/dev/null
	k -n "$ns" create rolebinding list-pods --role=list-pods --serviceaccount="$driver_ns:$account" >/dev/null
	gated_claim 3
	audit=$("$cluster/audit" mark)
	# A plugin knows the pods that were reserved at its last Prepare: at least 17 on either node.
	for i in {0..17}; do on_node "p$i" $((i % 2)); done
	reserved() { k -n "$ns" get resourceclaim d -o json | jq -e --argjson n "$1" '.status.reservedFor | length == $n' >/dev/null; }
	eventually 60 reserved 18
	for i in {0..17}; do eventually 100 event_contains "Pod/p$i" "the pod waits for the start gate of ComputeDomain '$ns/d': 2 of 3 nodes"; done
	[[ $(asked | wc -l) == 0 ]]
	# A kubelet by itself retries 60 to 90 s after the failure.
	on_node last 2
	running last 30
	for i in {0..17}; do running "p$i" 30; done
	[[ $(asked | wc -l) == 18 ]]
	# No plugin writes to a pod of another node.
	[[ -z $("$cluster/audit" "$audit" | grep -F "patch pods $ns/" | awk '$NF >= 400') ]]
	k -n "$ns" delete pods --all >/dev/null
	eventually 60 condition_is d StartGateOpen False
}
