#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# An agent on each node runs the IMEX of ComputeDomains (imex.agents=true). All nodes are of one rack.

load driver
load agents

setup_file() {
	with_agents
	eventually 60 agents_idle $nodes
}
teardown_file() { without_agents; }
setup() { ns_begin; }
teardown() { ns_end; }

# bats test_tags=matrix
@test "a domain forms by agents: no daemon pod, no DaemonSet, no clique of its own, and the same status" {
	domain two 2
	worker a two 0
	worker b two 1
	running a
	running b
	ready two
	eventually 10 listed_are two "node-0 0 Ready,node-1 1 Ready"
	[[ -z $(k -n "$driver_ns" get daemonsets,pods -l "$uid_label" -o name) ]]
	[[ -z $(k get computedomaincliques -A -o name) ]]
	[[ -z $(k get resourceclaimtemplates -A -l resource.nvidia.com/computeDomainTarget=Daemon -o name) ]]
	told_of_both() { k -n "$ns" get events -o json | jq -e 'any(.items[]; .reason == "NodeJoined") and any(.items[]; .reason == "Ready")' >/dev/null; }
	eventually 10 told_of_both
	eventually 20 eval '[[ $(k get nodes -l "$uid_label=$(domain_uid two)" -o name | wc -l) == 2 ]]' # late, for people
}

# bats test_tags=matrix
@test "a9: another domain on the same nodes, back to back, with four nodes, and none has an address before the node is free" {
	domain first
	domain second
	local i
	for i in 0 1 2 3; do worker "a$i" first $i; done
	for i in 0 1 2 3; do running "a$i"; done
	k -n "$ns" delete pods --all --wait=false --grace-period=0 >/dev/null 2>&1
	for i in 0 1 2 3; do worker "b$i" second $i; done
	for i in 0 1 2 3; do running "b$i"; done
	ready second
	# Who is free first has the first index.
	[[ $(seats second | awk '{ print $1 }' | tr '\n' ,) == node-0,node-1,node-2,node-3, ]]
	[[ $(seats second | awk '{ print $2 }' | sort | tr '\n' ,) == 0,1,2,3, ]]
	eventually 20 seats_are first ""
	local ports
	ports=$(k get computedomainfabrics -o json | jq '[.items[].domains[].port] | unique | length')
	[[ $ports == 2 ]]
}

# bats test_tags=matrix
@test "a domain grows and shrinks, and who stays keeps its index and its IMEX" {
	domain grows
	worker a grows 0
	running a
	worker b grows 1
	running b
	local pid
	pid=$(imex_pid 0)
	worker c grows 2
	running c
	k -n "$ns" delete pod b --grace-period=0 --force >/dev/null 2>&1
	eventually 30 seats_are grows "node-0 0,node-2 2,"
	worker d grows 3
	running d
	eventually 10 seats_are grows "node-0 0,node-2 2,node-3 3,"
	[[ $(imex_pid 0) == "$pid" ]]
}

@test "a domain that is deleted leaves nothing on its nodes, and says what it waits for" {
	domain gone
	worker a gone 0
	running a
	k -n "$ns" delete pod a --grace-period=0 --force >/dev/null 2>&1
	k -n "$ns" delete computedomain gone --timeout=60s >/dev/null
	eventually 30 domains_gone
	eventually 30 agents_idle $nodes
}

@test "another controller takes over, and no IMEX notices" {
	domain over
	worker a over 0
	running a
	worker b over 1
	running b
	local pids
	pids="$(imex_pid 0)$(imex_pid 1)"
	k -n "$driver_ns" delete pods -l compute-domains-component=controller --grace-period=0 --force >/dev/null 2>&1
	worker c over 2
	running c
	[[ $(imex_pid 0)$(imex_pid 1) == "$pids" ]]
	eventually 10 seats_are over "node-0 0,node-1 1,node-2 2,"
}

@test "a6: the fabric's object is deleted under load: nobody's IMEX or index changes" {
	domain kept
	worker a kept 0
	worker b kept 1
	running a
	running b
	local pids was
	pids="$(imex_pid 0)$(imex_pid 1)"
	was=$(seats kept)
	k delete computedomainfabrics --all >/dev/null
	eventually 30 seats_are kept "$(tr '\n' , <<<"$was")"
	[[ $(imex_pid 0)$(imex_pid 1) == "$pids" ]]
	worker c kept 2
	running c
}

@test "a17: the chart is upgraded and removed under load: no IMEX ends" {
	domain safe
	worker a safe 0
	running a
	worker b safe 1
	running b
	local pids
	pids="$(imex_pid 0)$(imex_pid 1)"
	with_agents true --set daemon.podLabels.version=next # another template of the agents' pods
	eventually 60 eval '[[ $(k -n "$driver_ns" get pods -l $agents,version=next -o name | wc -l) == 2 ]]' # where nobody uses IMEX
	[[ $(imex_pid 0)$(imex_pid 1) == "$pids" ]]
	"$cluster/helm" uninstall compute-domains --namespace "$driver_ns" --wait --timeout 120s >/dev/null
	[[ $(imex_pid 0)$(imex_pid 1) == "$pids" ]]
	k -n "$ns" get pods a b -o json | jq -e 'all(.items[]; .status.phase == "Running")' >/dev/null
	with_agents
	worker c safe 2
	running c 90
	[[ $(imex_pid 0)$(imex_pid 1) == "$pids" ]]
	# Where c comes as the idle agent there is replaced, it waits for the new Pod: no place is lost on the old one.
	seats safe
	[[ $(seats safe | tr '\n' ,) == "node-0 0,node-1 1,node-2 2," ]]
}

# Off and on again: each of these two begins as the other one ends.
@test "agents are switched off under load: a domain of agents goes on, and grows, until it ends" {
	domain stays
	worker a stays 0
	running a
	local pid
	pid=$(imex_pid 0)
	with_agents false
	eventually 60 eval '[[ $(k get nodes -l $agent_label -o name) == node/node-0 ]]'
	worker b stays 1
	running b 90
	domain pods
	worker c pods 2
	running c
	[[ $(imex_pid 0) == "$pid" ]]
	[[ -n $(k -n "$driver_ns" get daemonsets -l "$uid_label=$(domain_uid pods)" -o name) ]]
	seats_are stays "node-0 0,node-1 1,"
	k -n "$ns" delete pods,computedomains --all --timeout=90s >/dev/null
	eventually 60 no_agents
}

@test "agents are switched on under load: a domain of daemon pods goes on, grows, and idle agents yield to it" {
	with_agents false
	eventually 60 no_agents
	domain pods
	worker a pods 0
	running a
	local pid
	pid=$(imex_pid 0)
	with_agents
	eventually 60 agents_idle $((nodes - 1)) # node-0 has a daemon pod
	worker b pods 1                           # where an agent is idle
	running b 90
	domain new
	worker c new 2
	running c
	[[ $(imex_pid 0) == "$pid" ]]
	[[ -n $(k -n "$driver_ns" get daemonsets -l "$uid_label=$(domain_uid pods)" -o name) ]]
	[[ -z $(k -n "$driver_ns" get daemonsets -l "$uid_label=$(domain_uid new)" -o name) ]]
	k -n "$ns" delete pods,computedomains --all --timeout=90s >/dev/null
	eventually 60 agents_idle $nodes # they are back where daemon pods were
}
