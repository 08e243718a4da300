#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SIGKILL before any request of the controller while a node changes from one ComputeDomain to the next. Each
# ComputeDomain becomes ready there, with an index that no other node has, and nothing is left. For the daemon see
# unit/daemon/test_kill_points.c. The test itself starts the controller.

load ../cluster/driver
load ../cluster/domains
load ../cluster/kill_points
nodes=2

setup_file() {
	with_driver $nodes
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	eventually 60 no_controller
}
teardown_file() { with_driver $nodes; }
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
	eventually 90 domains_gone
}
# ready_on_node_0 UID: the daemon there is ready in this ComputeDomain, with the assignment in the fabric object. No
# other ComputeDomain lists the node, and no epoch occurs twice.
ready_on_node_0() {
	local assignment
	assignment=$(k -n "$driver_ns" get pods -l $daemon_selector --field-selector spec.nodeName=node-0 -o json |
		jq -r '.items[0].metadata.annotations | select(.["imex.resource.nvidia.com/ready"] == "true") |
			.["imex.resource.nvidia.com/report"] // "{}" | fromjson | .assignment // ""')
	k get computedomainfabrics -o json | jq -e --arg uid "$1" --arg assignment "$assignment" '.items[0] | .metadata.name as $name |
		[.domains[] | .owner.uid as $d | .assignments[] | {d: $d, node, index, epoch, state}] as $all |
		[$all[] | select(.node == "node-0")] as $here | ($all | length == (map(.epoch) | unique | length)) and
		($here | length == 1 and .[0].d == $uid and (.[0].state // "") == "" and $assignment == "\($name)/\($uid)/\(.[0].index)/\(.[0].epoch)")' >/dev/null
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
	eventually 90 domains_gone
	eventually 30 daemons_idle $nodes
}
# failure: the controller is killed at any request while a node changes its IMEX domain -> the change
#   completes
@test "the controller is killed before its requests while a node changes from one ComputeDomain to the next" {
	killed_at_each 8 handed_over
}
