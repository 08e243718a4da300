#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Kubernetes' own gang scheduling keeps the pods of a PodGroup in one NVLink partition, without pod affinity. Both
# features are off by default in Kubernetes 1.37, so the Kubernetes components are restarted.

load ../cluster/driver
load ../cluster/operators

setup_file() {
	local i
	"$cluster/up" 4
	since 37 'PodGroups with a topology constraint need Kubernetes 1.37'
	with_driver 4
	for i in 2 3; do "$cluster/clique" "$i" 2; done
	eventually 60 two_partitions
	gates GenericWorkload=true,TopologyAwareWorkloadScheduling=true
}
teardown_file() {
	local i
	gates ""
	for i in 2 3; do "$cluster/clique" "$i" 1; done
	eventually 60 one_partition
}
setup() {
	ns_begin
	domain d
	eventually 20 eval 'k -n "$ns" get resourceclaimtemplate d'
}
teardown() { ns_end; }

# gates LIST: restarts Kubernetes with these feature gates.
gates() {
	local name
	export CD_FEATURE_GATES=$1
	CD_APISERVER_FLAGS=${1:+--runtime-config=scheduling.k8s.io/v1beta1=true} "$cluster/apiserver" restart
	for name in scheduler controller-manager kubelet-0 kubelet-1 kubelet-2 kubelet-3; do
		"$cluster/service" "$name" restart
	done
	unset CD_FEATURE_GATES
	eventually 60 slices_published 4
}
# partition NODE: prints the partition of a node.
partition() { k get node "$1" -o jsonpath='{.metadata.labels.nvidia\.com/gpu\.clique}'; }
two_partitions() { [[ $(partition node-0) == "$(partition node-1)" && $(partition node-2) == "$(partition node-3)" && $(partition node-0) == *.1 && $(partition node-2) == *.2 ]]; }
one_partition() { [[ $(k get nodes -o json | jq '[.items[].metadata.labels["nvidia.com/gpu.clique"]] | unique | length') == 1 ]]; }

# gang NAME: creates a PodGroup of two pods in one partition, each with a channel and all GPUs of a node.
gang() {
	local i
	k -n "$ns" apply -f - >/dev/null <<-YAML
		apiVersion: scheduling.k8s.io/v1beta1
		kind: PodGroup
		metadata: {name: $1}
		spec:
		  schedulingPolicy: {gang: {minCount: 2}}
		  schedulingConstraints: {topology: [{key: nvidia.com/gpu.clique}]}
	YAML
	for i in 0 1; do pod_with_channel "$1-$i" d "schedulingGroup: {podGroupName: $1}" "gang-$1" 'limits: {nvidia.com/gpu: 4}'; done
}
nodes_of_gang() { k -n "$ns" get pods -l "gang-$1" -o json | jq -r '[.items[] | .spec.nodeName // "none"] | sort | join(" ")'; }
unschedulable() { k -n "$ns" get pods -l "gang-$1" -o json | jq -e '.items | length == 2 and all(.[]; any(.status.conditions[]?; .type == "PodScheduled" and .status == "False"))' >/dev/null; }

# failure: no partition has room for all pods of a gang -> none of them is scheduled until one has
@test "PodGroups with a topology constraint run in one partition each, or wait until a partition has room" {
	pod_with_channel busy d 'nodeSelector: {kubernetes.io/hostname: node-0}' other 'limits: {nvidia.com/gpu: 4}'
	running busy
	gang first
	eventually 60 pods_run gang-first 2
	[[ $(nodes_of_gang first) == 'node-2 node-3' ]]
	all_have_channels gang-first
	gang second
	eventually 60 unschedulable second
	[[ $(nodes_of_gang second) == 'none none' ]]
	k -n "$ns" delete pod busy >/dev/null
	eventually 90 pods_run gang-second 2
	[[ $(nodes_of_gang second) == 'node-0 node-1' ]]
	all_have_channels gang-second
}
