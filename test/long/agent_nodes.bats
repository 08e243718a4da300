#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What happens to nodes of agents that takes Kubernetes a minute and more to notice.

load ../cluster/driver
load ../cluster/agents

setup_file() {
	with_agents
	eventually 60 agents_idle $nodes
}
teardown_file() { without_agents; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || "$cluster/power" 3 on
	ns_end
}

@test "a node is lost: the others go on, and its place is kept" {
	domain losing
	worker a losing 0
	running a
	worker b losing 3
	running b
	"$cluster/power" 3 off
	eventually 120 eval 'k -n "$ns" get computedomain losing -o json | jq -e ".status.conditions[] | select(.type == \"Ready\") | .reason == \"NodeLost\"" >/dev/null'
	seats_are losing "node-0 0,node-3 1,"
	"$cluster/power" 3 on
	k -n "$ns" delete pod b --grace-period=0 --force >/dev/null 2>&1
	eventually 120 agents_running
}
