#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# One IMEX domain that agents run for all ComputeDomains of a rack, and a channel of its own for each (imex.agents=true
# with imex.isolation=channel). All nodes are of one rack.

load driver
load channels
load standing

nodes=3
setup_file() {
	"$cluster/up" $nodes
	with_standing
	eventually 90 all_joined $nodes
}
# What comes after this file wants the driver as it is by itself, which the last test has made it, if all was well.
teardown_file() {
	k get nodes -o name | xargs -n1 "$cluster/kubectl" uncordon >/dev/null
	no_agents || with_driver $nodes
	eventually 90 no_agents
	forget_agents
}
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || k get computedomainfabrics -o json | jq -c '.items[] | {domains, conditions}' | cut -c1-2000
	ns_end
}
# written MARK: what our programs have written since, Events and leases apart, and the fabric's object, where channels of earlier
# ComputeDomains are given back meanwhile.
written() { "$cluster/audit" "$1" | awk '$2 ~ /^system:serviceaccount:'"$driver_ns"':/ && $3 ~ /^(create|update|patch|delete)$/ && $4 !~ /^(events|leases|computedomainfabrics)$/'; }

@test "a2: nodes are in one domain before anybody uses it; two tenants have two channels; a second pod costs no write of ours and no start of IMEX" {
	local pids mark table
	pids=$(imex_pids 0 1)
	[[ $(wc -l <<<"$pids") == 2 && $(standing | jq -s length) == 1 ]]
	domain one
	domain two
	worker a one 0
	worker b one 1
	worker c two 0
	running a && running b && running c
	[[ $(channels_of a) == "$(channels_of b)" && $(channels_of a) != "$(channels_of c)" && $(channels_of a) != 0 ]]
	eventually 20 condition_is one ChannelAssigned True
	eventually 20 condition_is one IMEXHealthy True
	eventually 20 condition_is two IMEXHealthy True
	eventually 10 eval '[[ $(holds 0 | wc -l) == 2 && $(holds 1 | wc -l) == 1 ]]'
	eventually 30 agents_connected $nodes
	table="$(standing) $(entry "$(domain_uid one)") $(entry "$(domain_uid two)")"
	mark=$("$cluster/audit" mark)
	worker d one 0
	running d
	[[ $(channels_of d) == "$(channels_of a)" ]]
	for_seconds 3 true # what is written a second later, too
	[[ -z $(written "$mark") ]] || { written "$mark"; false; }
	[[ "$(standing) $(entry "$(domain_uid one)") $(entry "$(domain_uid two)")" == "$table" ]]
	[[ $(imex_pids 0 1) == "$pids" ]]
	[[ -z $(k -n "$driver_ns" get daemonsets -l "$uid_label" -o name) ]]
}

@test "a10: a cordoned node leaves when nobody uses it, offers nothing, and joins again; elsewhere IMEX goes on" {
	domain one
	worker a one 0
	worker b one 2
	running a && running b
	local pids seat
	pids=$(imex_pids 0 1)
	seat=$(seat_of 2)
	k cordon node-2 >/dev/null
	for_seconds 3 agent_says 2 READY # it is in use
	[[ -n $(imex_pid 2) && $(seat_of 2) == "$seat" ]]
	k -n "$ns" delete pod b --grace-period=0 --force >/dev/null 2>&1
	eventually 30 seated_are "node-0 node-1 "
	eventually 30 agent_says 2 IDLE
	[[ -z $(imex_pid 2) ]]
	eventually 20 devices_are 2 "daemon 1"
	k uncordon node-2 >/dev/null
	eventually 30 all_joined $nodes
	[[ $(seat_of 2) != "$seat" ]] # a place of its own
	worker c one 2
	running c
	[[ $(channels_of c) == "$(channels_of a)" ]]
	[[ $(imex_pids 0 1) == "$pids" ]]
}

@test "a6: the fabric's object is deleted, controllers and plugins are replaced under load: no IMEX ends" {
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
	eventually 90 all_joined $nodes
	[[ $(imex_pids 0 1 2) == "$pids" ]]
	worker c one 2
	running c 90
	[[ $(channels_of c) == "$channel" ]]
	# Controllers that know nothing of the object before it give nobody else a channel for a minute.
	eventually 90 fabric_is_silent TableLost
}

@test "switched off under load: the nodes leave as their pods end, and the others at once" {
	domain one
	worker a one 0
	running a
	local pid
	pid=$(imex_pid 0)
	with_driver $nodes
	eventually 90 eval '[[ $(k get nodes -l resource.nvidia.com/imex-agent -o name) == node/node-0 ]]'
	[[ $(imex_pid 0) == "$pid" ]]
	k -n "$ns" delete pods,computedomains --all --timeout=90s >/dev/null
	eventually 60 no_agents
}
