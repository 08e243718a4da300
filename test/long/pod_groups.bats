#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A gang of pods with a PodGroup that names a claim for a channel. PodGroups with claims are off by default in Kubernetes
# 1.37, so the Kubernetes components are restarted.

load ../cluster/driver
load ../cluster/gates

setup_file() {
	with_driver 2
	gates 2 GenericWorkload=true,DRAWorkloadResourceClaims=true
}
teardown_file() {
	gates 2 ""
	k delete resourceslice compute-domain.nvidia.com-shared --ignore-not-found >/dev/null
	"$cluster/host-imex" all stop
}
setup() {
	k api-resources --api-group=scheduling.k8s.io -o name | grep -q '^podgroups' || skip "this version of Kubernetes has no PodGroups"
	ns_begin
	domain d
	eventually 20 eval 'k -n "$ns" get resourceclaimtemplate d'
}
teardown() { [[ -z ${ns:-} ]] || ns_end; }

# pod_group [CLAIMS]: creates the PodGroup. gang_pod NODE [TEMPLATE]: creates a pod that the group needs.
pod_group() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: gang}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  resourceClaims: [${1:-}]
END
}
gang_pod() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: gang-$1}
spec:
  terminationGracePeriodSeconds: 0
  schedulingGroup: {podGroupName: gang}
  nodeSelector: {kubernetes.io/hostname: node-$1}
  resourceClaims: [{name: channel, resourceClaimTemplateName: ${2:-d}}]
  containers:
  - {name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"], resources: {claims: [{name: channel}]}}
END
}
# group_event_contains TEXT: an Event of the PodGroup contains this text.
group_event_contains() { k -n "$ns" describe podgroup gang | grep -q "PodGroupOnOneNode.*$1"; }

# claim_reason_is REASON: the reason of the condition SharedClaimAvailable of the ComputeDomain.
claim_reason_is() { [[ $(condition d SharedClaimAvailable reason) == "$1" ]]; }

# failure: a PodGroup for two nodes names a claim -> it stays Pending, and an Event reports why
@test "a gang on two nodes with the claim in its PodGroup stays Pending, and an Event of the PodGroup reports why" {
	pod_group '{name: channel, resourceClaimTemplateName: d}'
	gang_pod 0
	gang_pod 1
	eventually 30 group_event_contains "channel of ComputeDomain 'd'. A channel belongs to one node"
	eventually 10 claim_reason_is PodGroupOnOneNode
	k -n "$ns" get resourceclaims -o json | jq -e '.items | length == 1 and .[0].status.allocation == null and .[0].metadata.ownerReferences[0].kind == "PodGroup"'
	[[ $(k -n "$ns" get pods -o json | jq -r '[.items[].status.phase] | unique | join(",")') == Pending ]]
}

# failure: a PodGroup follows the advice of that Event -> the gang runs on two nodes
@test "without the claim in its PodGroup, as the Event advises, the gang runs on two nodes" {
	pod_group
	gang_pod 0
	gang_pod 1
	running gang-0
	running gang-1
	[[ $(k -n "$ns" describe podgroup gang) != *PodGroupOnOneNode* ]]
}

# failure: with isolation by channel, a PodGroup names a claim for one node -> the Event names another claim template, which works
@test "with isolation by channel, the gang runs on two nodes with the claim template that the Event names" {
	k -n "$ns" delete computedomain d --timeout=60s >/dev/null
	"$cluster/host-imex" all start
	with_driver 2 --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.isolation=channel
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: d}
spec: {numNodes: 0, channel: {resourceClaimTemplate: {name: d}, sharedResourceClaimTemplate: {name: shared}}}
END
	eventually 60 claim_reason_is SharedClaimCreated
	pod_group '{name: channel, resourceClaimTemplateName: d}'
	gang_pod 0
	eventually 30 group_event_contains "recreate the PodGroup with the claim template shared"
	eventually 10 claim_reason_is PodGroupOnOneNode
	k -n "$ns" delete pod gang-0 >/dev/null
	k -n "$ns" delete podgroup gang >/dev/null
	eventually 60 claim_reason_is SharedClaimCreated
	pod_group '{name: channel, resourceClaimTemplateName: shared}'
	gang_pod 0 shared
	gang_pod 1 shared
	running gang-0
	running gang-1
	k -n "$ns" get resourceclaims -o json | jq -e '.items | length == 1 and .[0].status.allocation.devices.results[0].device == "channel-shared"'
}
