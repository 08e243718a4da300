#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The IMEX domain that stands for a whole rack (imex.agents=true with imex.isolation=channel): the chart is rolled back under it, it has no place
# left, nodes join it later.

load ../cluster/driver
load ../cluster/channels
load ../cluster/kill_points
load ../cluster/standing

nodes=3

setup_file() {
	"$cluster/up" $nodes
	with_standing
	eventually 90 all_joined $nodes
}
teardown_file() {
	with_driver $nodes
	eventually 90 no_agents
	forget_agents
}
setup() { ns_begin; }
teardown() {
	k uncordon node-0 node-1 node-2 >/dev/null
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || k get computedomainfabrics -o json | jq -c '.items[] | {domains, conditions}' | cut -c1-2000
	local clean=0
	ns_end || clean=1
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || {
		with_standing
		slots_are 18 || room_for_all
	}
	return $clean
}
# room_for_all: what those words say, without pods that have channels.
room_for_all() {
	k cordon node-0 node-1 node-2 >/dev/null
	eventually 60 seated_are ""
	k uncordon node-0 node-1 node-2 >/dev/null
	eventually 90 all_joined $nodes
	slots_are 18
}
# plugin_says K WORDS TEXT: a line in the log of the node's plugin has both.
plugin_says() { k -n "$driver_ns" logs "$(plugin_pod "$1")" -c compute-domains | grep -F "$2" | grep -F "$3" >/dev/null; }
slots_are() { [[ $(standing | jq .slots) == "$1" ]]; }

@test "helm rollback under load: no pid of IMEX changes, and no channel" {
	domain one
	worker a one 0
	worker b one 1
	running a && running b
	local pids channel
	pids=$(imex_pids 0 1 2)
	channel=$(channels_of a)
	with_standing --set logVerbosity=5
	"$cluster/helm" rollback compute-domains --namespace "$driver_ns" --wait --timeout 120s >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
	[[ $(imex_pids 0 1 2) == "$pids" ]]
	[[ $(channels_of a) == "$channel" && $(channels_of b) == "$channel" ]]
	worker c one 2
	running c 90
	[[ $(channels_of c) == "$channel" ]]
	[[ $(imex_pids 0 1 2) == "$pids" ]]
}

@test "the domain is full: whoever is in it goes on, a Prepare on the node without a place says the remedy, and that heals it" {
	# The room for nodes is written with the first one.
	with_driver $nodes
	eventually 90 no_agents
	forget_agents
	k cordon node-0 >/dev/null
	with_standing --set resources.computeDomains.imex.maxNodesPerDomain=2
	eventually 90 seated_are "node-1 node-2 "
	k uncordon node-0 >/dev/null
	eventually 60 fabric_says DomainFull "room for 2 nodes" "get no place: node-0" "Set imex.maxNodesPerDomain to the number of nodes"
	devices_are 0 "daemon 1"
	eventually 30 node_event 0 IMEXNoPlace ComputeDomainDevicesWithheld
	eventually 30 plugin_says 0 "this node offers no devices" "get no place: node-0. Set imex.maxNodesPerDomain to the number of nodes"
	local uid
	domain one
	worker a one 0
	worker b one 1
	running b
	eventually 30 event_says Pod/a "cannot allocate all claims"
	# The node may have had a place when the scheduler looked. What its kubelet is told then is the pod's Event.
	channel_given "$(domain_uid one)" held ', isolation: Channel'
	uid=$(k -n "$ns" get resourceclaim held -o jsonpath='{.metadata.uid}')
	run "$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" "$plugin_dir/dra.sock" prepare "$ns" held "$uid"
	[[ $status == 1 && $output == *"Set imex.maxNodesPerDomain to the number of nodes"* ]]
	"$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" "$plugin_dir/dra.sock" unprepare "$ns" held "$uid"
	seated_are "node-1 node-2 "
	has_channel_of_one b
	k -n "$ns" delete pod/b resourceclaim/held >/dev/null
	with_standing
	slots_are 2
	room_for_all
	eventually 30 fabric_is_silent DomainFull
	running a 120
}
has_channel_of_one() { [[ $(channels_of "$1") == "$(entry "$(domain_uid one)" | cut -d' ' -f1)" ]]; }

@test "a10: a node that is new joins, and elsewhere IMEX goes on" {
	domain one
	worker a one 0
	running a
	local pids
	pids=$(imex_pids 0 1 2)
	"$cluster/up" 4
	# A kubelet that has not met the plugin yet looks at the agent's Pod again after a minute or more.
	eventually 180 all_joined 4
	worker d one 3
	running d
	[[ $(channels_of d) == "$(channels_of a)" ]]
	[[ $(imex_pids 0 1 2) == "$pids" ]]
}
