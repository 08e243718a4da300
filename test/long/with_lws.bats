#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# LeaderWorkerSet runs, in the version that test/cluster/programs/schemas names. The groups of the example have two pods
# here, because there are four nodes.

load ../cluster/driver
load ../cluster/operators

setup_file() {
	with_driver 4
	with_operator lws
}
teardown_file() { without_operator lws; }
setup() { ns_begin; }
teardown() {
	[[ -z ${ns:-} ]] || k -n "$ns" delete leaderworkersets,statefulsets --all --timeout=60s >/dev/null
	ns_end
}

all=leaderworkerset.sigs.k8s.io/name=inference
example() { with_image <"$checkout/examples/lws.yaml" | sed 's|size: 4|size: 2|'; }
runs_on_four_nodes() { pods_run "$all" 4 && [[ $(nodes_of "$all") == 4 ]]; }
domain_has_nodes() { [[ $(k -n "$ns" get computedomain inference -o json | jq '.status.nodes // [] | length') == "$1" ]]; }
group_is_new() { pods_run "$all,leaderworkerset.sigs.k8s.io/group-index=$1" 2 && [[ -z $(comm -12 <(uids_of "$all") <(echo "$2")) ]]; }

@test "the LeaderWorkerSet of the example runs two groups, scales down and up, and its nodes join and leave the ComputeDomain" {
	local first
	example | k -n "$ns" apply -f - >/dev/null
	eventually 120 runs_on_four_nodes
	all_have_channels "$all"
	eventually 60 domain_has_nodes 4
	eventually 60 condition_is inference PeersConnected True
	first=$(uids_of "$all,leaderworkerset.sigs.k8s.io/group-index=0")
	k -n "$ns" scale leaderworkerset inference --replicas=1 >/dev/null
	eventually 60 pods_run "$all" 2
	eventually 60 domain_has_nodes 2
	k -n "$ns" scale leaderworkerset inference --replicas=2 >/dev/null
	eventually 120 runs_on_four_nodes
	all_have_channels "$all"
	eventually 60 domain_has_nodes 4
	eventually 60 condition_is inference PeersConnected True
	[[ $(uids_of "$all,leaderworkerset.sigs.k8s.io/group-index=0") == "$first" ]]
}

# failure: a worker of a LeaderWorkerSet fails -> its group is recreated with channels, and other groups keep theirs
@test "a failed worker recreates its group, whose new pods get channels, and the other group keeps running" {
	local first second
	example | k -n "$ns" apply -f - >/dev/null
	eventually 120 runs_on_four_nodes
	first=$(uids_of "$all,leaderworkerset.sigs.k8s.io/group-index=0")
	second=$(uids_of "$all,leaderworkerset.sigs.k8s.io/group-index=1")
	kill_in_pod "$ns" inference-1-1 sleep
	eventually 120 group_is_new 1 "$second"
	all_have_channels "$all"
	[[ $(uids_of "$all,leaderworkerset.sigs.k8s.io/group-index=0") == "$first" ]]
	eventually 60 condition_is inference PeersConnected True
}
