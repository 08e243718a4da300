#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The daemons of a partition run one IMEX domain for all ComputeDomains, each of which has its own channel
# (imex.isolation=channel). All nodes are in one partition.

load ../cluster/driver
load ../cluster/channels
load ../cluster/standing

nodes=3
setup_file() {
	"$cluster/up" $nodes
	with_standing
	eventually 120 all_joined $nodes
}
teardown_file() {
	k get nodes -o name | xargs -n1 "$cluster/kubectl" uncordon >/dev/null
	with_driver $nodes
	eventually 90 daemons_idle $nodes
}
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || k get computedomainfabrics -o json | jq -c '.items[] | {domains, conditions}' | cut -c1-2000
	ns_end
}
# written MARK: prints what the driver's programs have written since this mark, except for Events, leases and the
# fabric object, which changes when channels of earlier ComputeDomains are released.
written() {
	local requests
	requests=$("$cluster/audit" "$1") || return
	awk '$2 ~ /^system:serviceaccount:'"$driver_ns"':/ && $3 ~ /^(create|update|patch|delete)$/ && $4 !~ /^(events|leases|computedomainfabrics)$/' <<<"$requests"
}

# failure: ComputeDomains come and go -> the standing domain stays, and tenants have different channels
@test "nodes are in one IMEX domain before any pod uses it; two tenants have two channels; a second pod causes no write of the driver and no start of IMEX" {
	local pids one two mark table
	pids=$(imex_pids 0 1)
	[[ $(wc -l <<<"$pids") == 2 && $(standing | jq -s length) == 1 ]]
	domain one
	domain two
	worker a one 0
	worker b one 1
	worker c two 0
	running a && running b && running c
	one=$(channels_of a)
	two=$(channels_of c)
	[[ $(channels_of b) == "$one" && $one != "$two" && $one != 0 ]]
	eventually 20 condition_is one ChannelAssigned True
	eventually 20 condition_is one IMEXHealthy True
	eventually 20 condition_is two IMEXHealthy True
	eventually 10 eval '[[ $(holds 0 | wc -l) == 2 && $(holds 1 | wc -l) == 1 ]]'
	eventually 30 daemons_connected $nodes
	table="$(standing) $(entry "$(domain_uid one)") $(entry "$(domain_uid two)")"
	mark=$("$cluster/audit" mark)
	worker d one 0
	running d
	[[ $(channels_of d) == "$one" ]]
	for_seconds 3 true # including what is written a second later
	prints_nothing written "$mark" || { written "$mark"; false; }
	[[ "$(standing) $(entry "$(domain_uid one)") $(entry "$(domain_uid two)")" == "$table" ]]
	[[ $(imex_pids 0 1) == "$pids" ]]
}

# failure: a node is drained, with channel isolation -> it leaves, offers no channels, and joins again when
#   uncordoned [drained]
# failure: a node is cordoned, with channel isolation -> it leaves when no pod uses it, and others keep their
#   IMEX [cordoned]
@test "a node is cordoned and drained: it leaves when no pod uses it, offers nothing, and joins again; IMEX of the other nodes continues" {
	domain one
	worker a one 0
	worker b one 2
	running a && running b
	local pids assignment
	pids=$(imex_pids 0 1)
	assignment=$(assignment_of 2)
	k cordon node-2 >/dev/null
	for_seconds 3 daemon_state_is 2 READY # the node is in use
	[[ -n $(imex_pid 2) && $(assignment_of 2) == "$assignment" ]]
	k drain node-2 --ignore-daemonsets --force --delete-emptydir-data --timeout=60s >/dev/null 2>&1
	eventually 60 assigned_are "node-0 node-1 "
	eventually 30 daemon_state_is 2 IDLE
	[[ -z $(imex_pid 2) ]]
	eventually 20 devices_are 2 "daemon 1"
	eventually 30 fabric_condition_has NodesWithhold "node-2 (IMEXNotJoined)"
	k uncordon node-2 >/dev/null
	eventually 30 all_joined $nodes
	[[ $(assignment_of 2) != "$assignment" ]] # a new epoch
	eventually 30 no_fabric_condition NodesWithhold
	worker c one 2
	running c
	[[ $(channels_of c) == "$(channels_of a)" ]]
	[[ $(imex_pids 0 1) == "$pids" ]]
}

# failure: fabric object, controllers and plugins are replaced under pods -> no IMEX ends
@test "the fabric object is deleted, controllers and plugins are replaced under pods: no IMEX ends" {
	domain one
	worker a one 0
	worker b one 1
	running a && running b
	local pids channel
	pids=$(imex_pids 0 1 2)
	channel=$(channels_of a)
	k delete computedomainfabrics --all >/dev/null
	k -n "$driver_ns" delete pods -l app=compute-domain-controller --grace-period=0 --force >/dev/null 2>&1
	k -n "$driver_ns" delete pods -l app=compute-domain-kubelet-plugin --grace-period=0 --force >/dev/null 2>&1
	eventually 120 all_joined $nodes
	[[ $(imex_pids 0 1 2) == "$pids" ]]
	worker c one 2
	running c 90
	[[ $(channels_of c) == "$channel" ]]
	# Controllers that do not know the former object give no other ComputeDomain a channel for a minute.
	eventually 90 no_fabric_condition ChannelsIncomplete
	eventually 90 no_fabric_condition AssignmentsIncomplete
}

# failure: channel isolation is switched off under pods -> nodes leave as their pods end
@test "the isolation is switched off under pods: nodes leave as their pods end, the others at once, and a ComputeDomain gets its own IMEX domain" {
	domain one
	worker a one 0
	running a
	local pid
	pid=$(imex_pid 0)
	with_driver $nodes
	eventually 90 listed_are "node-0 "
	assigned_are "" # it leaves when its pod has ended
	eventually 30 daemon_state_is 1 IDLE
	[[ $(imex_pid 0) == "$pid" ]]
	k -n "$ns" delete pods,computedomains --all --timeout=90s >/dev/null
	eventually 60 daemons_idle $nodes
	domain own
	worker b own 1
	running b
	[[ $(assignment 1) == */"$(domain_uid own)"/* && $(k -n "$ns" exec b -- ls /dev/nvidia-caps-imex-channels) == channel0 ]]
}
