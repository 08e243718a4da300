#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Nodes that join the IMEX domain of their rack later (imex.agents=true with imex.isolation=channel).

load ../cluster/driver
load ../cluster/channels
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
teardown() { ns_end; }

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
