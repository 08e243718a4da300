#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kill -9 before any request of the controller while a node goes from one domain of agents to the next (imex.agents=true): each domain comes to
# be ready there, in a place that nobody else has, and nothing is left. Of the agent: unit/daemon/test_agent_kill_points.c. The controller runs by hand.

load ../cluster/driver
load ../cluster/agents
load ../cluster/kill_points
nodes=2

setup_file() {
	with_agents
	eventually 90 agents_idle $nodes
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	eventually 60 no_controller
}
teardown_file() { without_agents; }
setup() {
	controller=''
	ns_begin
}
teardown() {
	end_controller
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || { tail -20 "$BATS_TEST_TMPDIR/controller.log"; k get computedomainfabrics -o json | jq -c '.items[].domains'; } | cut -c1-600
	k -n "$ns" delete computedomains,resourceclaims --all --wait=false >/dev/null 2>&1 || true
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	k delete namespace "$ns" --timeout=90s >/dev/null
	eventually 60 domains_gone
}
no_controller() { [[ -z $(k -n "$driver_ns" get pods -l app=compute-domain-controller -o name) ]]; }
# ready_on_node_0 UID: the agent there is ready in that domain, in the very place that the fabric's object names; no other domain lists the node,
# and no epoch is there twice.
ready_on_node_0() {
	local seat
	seat=$(k -n "$driver_ns" get pods -l $agents --field-selector spec.nodeName=node-0 -o json |
		jq -r '.items[0].metadata.annotations | select(.["imex.resource.nvidia.com/ready"] == "true") | .["imex.resource.nvidia.com/seat"] // ""')
	k get computedomainfabrics -o json | jq -e --arg uid "$1" --arg seat "$seat" '.items[0] | .metadata.name as $name |
		[.domains[] | .owner.uid as $d | .seats[] | {d: $d, node, index, epoch}] as $all |
		[$all[] | select(.node == "node-0")] as $here | ($all | length == (map(.epoch) | unique | length)) and
		($here | length == 1 and .[0].d == $uid and $seat == "\($name)/\($uid)/\(.[0].index)/\(.[0].epoch)")' >/dev/null
}

handed_over() {
	local first second
	domain first
	domain second
	first=$(domain_uid first) second=$(domain_uid second)
	channel_given "$first" one
	eventually 60 ready_on_node_0 "$first"
	k -n "$ns" delete resourceclaim one >/dev/null
	channel_given "$second" two
	eventually 60 ready_on_node_0 "$second"
	k -n "$ns" delete resourceclaim/two computedomain/first computedomain/second --wait=false >/dev/null
	gone computedomain/first
	gone computedomain/second
	eventually 60 domains_gone
	eventually 30 agents_idle $nodes
}
@test "the controller is killed before its requests while a node goes from one domain of agents to the next" {
	killed_at_each 8 handed_over
}
