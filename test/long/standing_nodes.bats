#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The standing domain of a partition (imex.isolation=channel): the chart is rolled back under it, it is full, its
# nodes fail, and nodes join later.

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
teardown_file() { with_driver $nodes; }
setup() { ns_begin; }
teardown() {
	k uncordon node-0 node-1 node-2 >/dev/null
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || {
		k get computedomainfabrics -o json | jq -c '.items[] | {domains, conditions}' | cut -c1-2000
		"$cluster/power" 2 off
		"$cluster/power" 2 on
	}
	local clean=0
	ns_end || clean=1
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || {
		with_standing
		slots_are 18 || room_for_all
	}
	return $clean
}
# all_leave: removes all nodes from the standing domain, so that the next node creates it with the number of slots
# that is set now. There may be no pods with channels. room_for_all: follows the advice of the message.
all_leave() {
	k cordon node-0 node-1 node-2 >/dev/null
	eventually 60 assigned_are ""
}
room_for_all() {
	all_leave
	k uncordon node-0 node-1 node-2 >/dev/null
	eventually 90 all_joined $nodes
	slots_are 18
}
# plugin_logged K WORDS TEXT: one log line of the node's plugin contains both texts.
plugin_logged() { k -n "$driver_ns" logs "$(plugin_pod "$1")" -c compute-domains | grep -F "$2" | grep -F "$3" >/dev/null; }
slots_are() { [[ $(standing | jq .slots) == "$1" ]]; }

# failure: helm rollback under pods, with channel isolation -> every IMEX keeps its process, and every pod its
#   channel [upgrade]
@test "helm rollback under pods: every IMEX keeps its process, and every pod its channel" {
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

# failure: the standing domain has no index left -> its nodes continue, and the waiting claim names the remedy
@test "the standing domain is full: its nodes are not disturbed, a Prepare on the node without an index names the remedy, and the remedy works" {
	with_standing --set resources.computeDomains.imex.maxNodesPerDomain=2
	slots_are 18
	all_leave
	k uncordon node-1 node-2 >/dev/null
	eventually 90 assigned_are "node-1 node-2 "
	slots_are 2
	k uncordon node-0 >/dev/null
	eventually 60 fabric_condition_has DomainFull "has 2 slots" "get no index: node-0" "Set imex.maxNodesPerDomain to the number of nodes"
	devices_are 0 "daemon 1"
	eventually 30 node_event 0 IMEXNoIndex ComputeDomainDevicesWithheld
	eventually 30 plugin_logged 0 "this node offers no devices" "get no index: node-0. The number of slots is set when the first node joins"
	local uid
	domain one
	worker a one 0
	worker b one 1
	running b
	eventually 30 event_contains Pod/a "cannot allocate all claims"
	# The node may have had an index when the scheduler chose it. The kubelet then gets this error, and an Event of
	# the pod reports it.
	channel_given "$(domain_uid one)" held ', isolation: Channel'
	uid=$(k -n "$ns" get resourceclaim held -o jsonpath='{.metadata.uid}')
	run "$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" "$plugin_dir/dra.sock" prepare "$ns" held "$uid"
	[[ $status == 1 && $output == *"Set imex.maxNodesPerDomain to the number of nodes"* ]]
	"$cluster/node" 0 "$checkout/build/test/kubelet/dra-call" "$plugin_dir/dra.sock" unprepare "$ns" held "$uid"
	assigned_are "node-1 node-2 "
	has_channel_of_one b
	k -n "$ns" delete pod/b resourceclaim/held >/dev/null
	with_standing
	slots_are 2
	room_for_all
	eventually 30 no_fabric_condition DomainFull
	running a 120
}
has_channel_of_one() { [[ $(channels_of "$1") == "$(entry "$(domain_uid one)" | cut -d' ' -f1)" ]]; }

# joined_again K BEFORE: the daemon of the node serves with another assignment than BEFORE, with the same index.
joined_again() {
	local now
	now=$(assignment_of "$1")
	[[ -n $now && $now != "$2" && $(jq .index <<<"$now") == "$(jq .index <<<"$2")" ]] && daemon_is_ready "$1"
}
channels_are() { [[ $(channels_of "$1" 2>/dev/null) == "$2" ]]; }

# failure: a node is rebooted, with channel isolation -> pods get the same channel, and others keep their IMEX
#   [rebooted]
@test "a node is rebooted under a pod with a channel: it gets a new epoch with its index, its pod has the same channel, and IMEX of the other nodes continues" {
	domain one
	worker a one 0
	worker b one 2
	running a && running b
	local pids before channel
	pids=$(imex_pids 0 1)
	before=$(assignment_of 2)
	channel=$(channels_of b)
	"$cluster/power" 2 off
	"$cluster/power" 2 on
	eventually 150 joined_again 2 "$before"
	eventually 90 all_joined $nodes
	eventually 90 channels_are b "$channel"
	[[ $(imex_pids 0 1) == "$pids" ]]
}

# failure: a node is powered off, with channel isolation -> its index stays taken, and others take new pods
#   [powered-off]
@test "a node is powered off under a pod with a channel: it keeps its index, the other nodes take new pods and keep their IMEX, and it joins again after the power" {
	domain one
	worker a one 0
	worker b one 2
	running a && running b
	local pids before
	pids=$(imex_pids 0 1)
	before=$(assignment_of 2)
	eventually 20 condition_is one IMEXHealthy True
	"$cluster/power" 2 off
	eventually 120 condition_is one IMEXHealthy Unknown
	[[ $(assignment_of 2) == "$before" ]]
	worker c one 1
	running c
	channels_are c "$(channels_of a)"
	"$cluster/power" 2 on
	eventually 150 joined_again 2 "$before"
	eventually 90 all_joined $nodes
	eventually 120 condition_is one IMEXHealthy True
	[[ $(imex_pids 0 1) == "$pids" ]]
}

# failure: a node is cut off, with channel isolation -> pod and IMEX continue, and index and channel stay
#   taken [cut-off]
@test "a node is cut off under a pod with a channel: pod and IMEX continue, its index and its channel are kept, and all is healthy with the same processes when it is back" {
	domain one
	worker b one 2
	running b
	local pids before channel
	pids=$(imex_pids 0 1 2)
	before=$(assignment_of 2)
	channel=$(channels_of b)
	eventually 20 condition_is one IMEXHealthy True
	"$cluster/link" 2 down
	eventually 120 condition_is one IMEXHealthy Unknown
	[[ $(assignment_of 2) == "$before" && $(imex_pids 0 1 2) == "$pids" ]]
	"$cluster/link" 2 up
	eventually 120 condition_is one IMEXHealthy True
	[[ $(assignment_of 2) == "$before" && $(imex_pids 0 1 2) == "$pids" ]]
	channels_are b "$channel"
}

# failure: the Pod of a daemon is force-deleted, with channel isolation -> no other node gets its index
#   [force-deleted]
@test "the Pod of a daemon is force-deleted under a pod with a channel: no other node gets its index, the next daemon joins again, and IMEX of the other nodes continues" {
	domain one
	worker a one 0
	running a
	local pids before
	pids=$(imex_pids 1 2)
	before=$(assignment_of 0)
	k -n "$driver_ns" delete pod "$(daemon_pod 0)" --grace-period=0 --force >/dev/null 2>&1
	for_seconds 10 has_index node-0 "$(jq .index <<<"$before")"
	k -n "$ns" delete pod a >/dev/null
	eventually 150 all_joined_after 0 "$before"
	worker b one 0
	running b 150
	[[ $(imex_pids 1 2) == "$pids" ]]
}
# has_index NODE INDEX: only this node has the index, in whatever state its assignment is.
has_index() { standing | jq -e --arg node "$1" --argjson index "$2" '[.assignments[] | select(.index == $index).node] == [$node]' >/dev/null; }
all_joined_after() { [[ $(assignment_of "$1") != "$2" ]] && all_joined $nodes; }

# failure: a new node joins the standing domain -> IMEX of the others continues
@test "a new node joins, and IMEX of the other nodes continues" {
	domain one
	worker a one 0
	running a
	local pids
	pids=$(imex_pids 0 1 2)
	"$cluster/up" 4
	# If the plugin was not registered yet, the kubelet retries the daemon's Pod after a minute or more.
	eventually 180 all_joined 4
	worker d one 3
	running d
	[[ $(channels_of d) == "$(channels_of a)" ]]
	[[ $(imex_pids 0 1 2) == "$pids" ]]
}
