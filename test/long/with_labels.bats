#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The examples of examples/auto-domains with the operators of other projects. The hosts run IMEX, and a label replaces
# the ComputeDomain. The pods have fewer GPUs than in the examples, because there are four nodes.

load ../cluster/driver
load ../cluster/channels
load ../cluster/operators

setup_file() {
	local name
	"$cluster/up" 4
	since 36 'MutatingAdmissionPolicies need Kubernetes 1.36'
	"$cluster/host-imex" all start
	with_new_channels
	with_driver 4 --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.hostProbeInterval=1s \
		--set resources.computeDomains.imex.isolation=channel --set resources.computeDomains.autoDomains.enabled=true
	for name in jobset lws mpi-operator; do with_operator "$name"; done
	with_operator kueue 'integrations: {frameworks: [batch/job]}'
	ns=default eventually 60 policy_works
}
teardown_file() {
	local name
	k delete topologies.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io,clusterqueues.kueue.x-k8s.io --all --ignore-not-found >/dev/null || true
	for name in jobset lws mpi-operator kueue; do without_operator "$name"; done
	channels_end
}
setup() { ns_begin; }
teardown() {
	[[ -z ${ns:-} ]] || k -n "$ns" delete jobsets,leaderworkersets,mpijobs --all --timeout=60s >/dev/null
	ns_end
}

label=resource.nvidia.com/auto-domain=enabled
policy_works() { sed "s|name: single|name: probe|" "$checkout/examples/auto-domains/pod.yaml" | k -n "$ns" create --dry-run=server -o json -f - | jq -e '.spec.resourceClaims | length == 1' >/dev/null; }
example() { that_sleep <"$checkout/examples/auto-domains/$1.yaml" | sed 's|nvidia.com/gpu: 4|nvidia.com/gpu: 1|'; }
# domains: prints the name and the owner of each ComputeDomain. uids_of_domains: prints their UIDs.
domains() { k -n "$ns" get computedomains -l "$label" -o json | jq -r '.items[].metadata | "\(.name) \(.ownerReferences[0].kind) \(.ownerReferences[0].name)"' | sort; }
uids_of_domains() { k -n "$ns" get computedomains -l "$label" -o json | jq -r '[.items[].metadata.uid] | sort[]'; }
nothing_is_left() { prints_nothing k -n "$ns" get computedomains,resourceclaims -o name; }
# common_channel SELECTOR: prints the only channel of all running pods with these labels. Fails if they have different ones.
common_channel() {
	local pod channels
	channels=$(for pod in $(pods_with "$1"); do channels_of "$pod"; done | sort -u)
	[[ $channels =~ ^[0-9]+$ ]] || { echo "channels: $channels" >&2; return 1; }
	echo "$channels"
}
# new_pods SELECTOR N OLD: N pods run, and none of them has one of these UIDs.
new_pods() { pods_run "$1" "$2" && [[ -z $(comm -12 <(uids_of "$1") <(echo "$3")) ]]; }

# failure: a labelled JobSet restarts -> its new pods share the channel of the same ComputeDomain
@test "a labelled JobSet gets one ComputeDomain, which its pods share before and after a restart, and which is deleted with it" {
	local uid channel before
	example jobset | sed 's|^\( *\)completionMode: Indexed|&\n\1backoffLimit: 0|' | k -n "$ns" apply -f - >/dev/null
	eventually 120 pods_run job=pretraining 5
	[[ $(domains) == auto-pretraining-*' JobSet pretraining' ]]
	channel=$(common_channel job=pretraining)
	uid=$(uids_of_domains)
	before=$(uids_of job=pretraining)
	kill_in_pod "$ns" "$(pods_with job=pretraining | sed -n '/-trainers-0-1-/p')" sleep
	eventually 120 new_pods job=pretraining 5 "$before"
	[[ $(common_channel job=pretraining) == "$channel" && $(uids_of_domains) == "$uid" ]]
	k -n "$ns" delete jobset pretraining >/dev/null
	eventually 60 nothing_is_left
}

# failure: a worker of a labelled LeaderWorkerSet fails -> its group is recreated with the same ComputeDomain
@test "each group of a labelled LeaderWorkerSet has its own ComputeDomain, also after it failed and after scaling" {
	local name=leaderworkerset.sigs.k8s.io/name=inference index=leaderworkerset.sigs.k8s.io/group-index uids before
	channels_differ() {
		local first second
		first=$(common_channel "$name,$index=0") && second=$(common_channel "$name,$index=1") && [[ $first != "$second" ]]
	}
	with_image <"$checkout/examples/auto-domains/lws.yaml" | sed 's|nvidia.com/gpu: 4|nvidia.com/gpu: 1|; s|size: 4|size: 2|' | k -n "$ns" apply -f - >/dev/null
	eventually 120 pods_run "$name" 4
	[[ $(domains) == $'auto-inference-0-group StatefulSet inference\nauto-inference-1-group StatefulSet inference' ]]
	channels_differ
	uids=$(uids_of_domains)
	before=$(uids_of "$name,$index=1")
	kill_in_pod "$ns" inference-1-1 sleep
	eventually 120 new_pods "$name,$index=1" 2 "$before"
	channels_differ
	k -n "$ns" scale leaderworkerset inference --replicas=1 >/dev/null
	eventually 60 pods_run "$name" 2
	k -n "$ns" scale leaderworkerset inference --replicas=2 >/dev/null
	eventually 120 pods_run "$name" 4
	channels_differ
	[[ $(uids_of_domains) == "$uids" ]]
	k -n "$ns" delete leaderworkerset inference >/dev/null
	eventually 60 nothing_is_left
}

@test "the workers of a labelled MPIJob share one channel, a recreated one, too, and the launcher has none" {
	local workers=training.kubeflow.org/job-role=worker launcher=training.kubeflow.org/job-role=launcher channel old
	example mpijob | sed -z 's|\n *args: \[[^]]*\]||g' | k -n "$ns" apply -f - >/dev/null
	eventually 120 pods_run "$workers" 4
	eventually 60 pods_run "$launcher" 1
	[[ $(domains) == auto-nvbandwidth-*' MPIJob nvbandwidth' ]]
	channel=$(common_channel "$workers")
	has_no_channel "$(pods_with "$launcher")"
	old=$(uid_of nvbandwidth-worker-2)
	k -n "$ns" delete pod nvbandwidth-worker-2 >/dev/null
	eventually 120 new_pods "$workers,training.kubeflow.org/replica-index=2" 1 "$old"
	[[ $(common_channel "$workers") == "$channel" ]]
	k -n "$ns" delete mpijob nvbandwidth >/dev/null
	eventually 60 nothing_is_left
}

# failure: Kueue evicts a labelled Job and admits it again -> it keeps its ComputeDomain
@test "a labelled Job in a queue of Kueue keeps its ComputeDomain when Kueue evicts it and admits it again" {
	local uid channel workload
	k -n "$ns" create --dry-run=client -o json -f "$checkout/examples/kueue.yaml" | jq 'select(.apiVersion | startswith("kueue.x-k8s.io"))' | k -n "$ns" apply -f - >/dev/null
	example kueue | k -n "$ns" apply -f - >/dev/null
	eventually 120 pods_run job-name=queued 4
	[[ $(domains) == auto-queued-*' Job queued' ]]
	channel=$(common_channel job-name=queued)
	uid=$(uids_of_domains)
	workload=$(k -n "$ns" get workloads.kueue.x-k8s.io -o name)
	k -n "$ns" patch "$workload" --type=merge -p '{"spec": {"active": false}}' >/dev/null
	eventually 60 pods_run job-name=queued 0
	[[ $(uids_of_domains) == "$uid" ]]
	k -n "$ns" patch "$workload" --type=merge -p '{"spec": {"active": true}}' >/dev/null
	eventually 120 pods_run job-name=queued 4
	[[ $(common_channel job-name=queued) =~ ^[0-9]+$ && $(uids_of_domains) == "$uid" ]]
	k -n "$ns" delete job queued >/dev/null
	eventually 60 nothing_is_left
}
