#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A gang of pods with a PodGroup that names a claim for a channel. PodGroups with claims are off by default in Kubernetes
# 1.37, so the Kubernetes components are restarted.

load ../cluster/driver

setup_file() {
	with_driver 2
	gates GenericWorkload=true,DRAWorkloadResourceClaims=true
}
teardown_file() { gates ""; }
setup() {
	k api-resources --api-group=scheduling.k8s.io -o name | grep -q '^podgroups' || skip "this version of Kubernetes has no PodGroups"
	ns_begin
	domain d
	eventually 20 eval 'k -n "$ns" get resourceclaimtemplate d'
}
teardown() { [[ -z ${ns:-} ]] || ns_end; }

# gates LIST: restarts Kubernetes with these feature gates.
gates() {
	local name
	export CD_FEATURE_GATES=$1
	CD_APISERVER_FLAGS=${1:+--runtime-config=scheduling.k8s.io/v1beta1=true} "$cluster/apiserver" restart
	for name in scheduler controller-manager kubelet-0 kubelet-1; do
		"$cluster/service" "$name" restart
	done
	unset CD_FEATURE_GATES
	eventually 60 slices_published 2
}

# pod_group [CLAIMS]: creates the PodGroup. gang_pod NODE: creates a pod that the group needs.
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
  resourceClaims: [{name: channel, resourceClaimTemplateName: d}]
  containers:
  - {name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"], resources: {claims: [{name: channel}]}}
END
}
# group_event_contains TEXT: an Event of the PodGroup contains this text.
group_event_contains() { k -n "$ns" describe podgroup gang | grep -q "PodGroupOnOneNode.*$1"; }

# failure: a PodGroup for two nodes names a claim -> it stays Pending, and an Event reports why
@test "a gang on two nodes with the claim in its PodGroup stays Pending, and an Event of the PodGroup reports why" {
	pod_group '{name: channel, resourceClaimTemplateName: d}'
	gang_pod 0
	gang_pod 1
	eventually 30 group_event_contains "channel of ComputeDomain 'd'. A channel belongs to one node"
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
