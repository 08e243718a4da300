#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Failures of nodes of a ComputeDomain that Kubernetes notices only after a minute or more.

load ../cluster/driver
load ../cluster/domains
nodes=4

setup_file() { with_driver $nodes; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || repair
	ns_end
}

# Repairs what a test that failed halfway may have left broken: the power, the network link or the Node.
repair() {
	"$cluster/power" 3 off
	"$cluster/power" 3 on
}

# failure: a node is powered off under a pod -> its index stays taken, and other nodes keep their IMEX
#   [powered-off]
@test "a node is powered off under a pod: the other nodes are not disturbed, its index is kept, and its daemon returns with the power" {
	domain losing
	worker a losing 0
	running a
	worker b losing 3
	running b
	local pid
	pid=$(imex_pid 0)
	"$cluster/power" 3 off
	eventually 120 eval '[[ $(condition losing Ready reason) == NodeLost ]]'
	eventually 10 event_contains ComputeDomain/losing "Node node-3 is lost"
	assigned_are losing "node-0 0,node-3 1,"
	[[ $(imex_pid 0) == "$pid" ]]
	"$cluster/power" 3 on
	k -n "$ns" delete pod b --grace-period=0 --force >/dev/null 2>&1
	eventually 120 daemon_state_is 3 IDLE
	eventually 30 assigned_are losing "node-0 0,"
	[[ $(imex_pid 0) == "$pid" ]]
}

# failure: a node is cut off under a pod -> pod and IMEX continue, and the ComputeDomain recovers [cut-off]
@test "a node is cut off under a pod: pod and IMEX continue, its index is kept, and the ComputeDomain is Ready with the same processes when it is back" {
	formed cut 0 3
	local pids before
	pids=$(imex_pids 0 3)
	before=$(assigned cut)
	"$cluster/link" 3 down
	eventually 120 eval '[[ $(condition cut Ready reason) == NodeLost ]]'
	eventually 10 event_contains ComputeDomain/cut "Node node-3 is lost"
	[[ $(assigned cut) == "$before" && $(imex_pids 0 3) == "$pids" ]]
	"$cluster/link" 3 up
	eventually 120 domain_field_is cut .status.status Ready
	eventually 120 condition_is cut PeersConnected True
	[[ $(assigned cut) == "$before" && $(imex_pids 0 3) == "$pids" ]]
	has_channel cut-3
}

# The kubelet there continues. Only it can prove that the daemon has ended.
# failure: a node is cut off and its daemon force-deleted -> no other node gets its index [cut-off]
@test "a node is cut off and its daemon force-deleted: its index is not given to another node while its IMEX runs" {
	domain cut
	worker a cut 0
	worker b cut 3
	running a
	running b
	local index pid
	index=$(assigned cut | sed -n 's/^node-3 //p') pid=$(imex_pid 3)
	"$cluster/link" 3 down
	k -n "$driver_ns" delete pod "$(daemon_pod 3)" --grace-period=0 --force >/dev/null 2>&1
	k -n "$ns" delete pod b --grace-period=0 --force >/dev/null 2>&1
	worker c cut 1
	running c
	for_seconds 20 eval '[[ $(assigned cut | sed -n "s/^node-1 //p") != "$index" ]]'
	test -d "/proc/$pid"
	"$cluster/link" 3 up
	eventually 180 daemon_state_is 3 IDLE
	eventually 30 eval '[[ $(assigned cut) != *node-3* ]]'
}

# The last test, because the kubelet registers another Node.
# failure: a Node object is force-deleted -> its index is free after a minute, and others keep their IMEX
#   [force-deleted]
@test "a Node is force-deleted while its kubelet runs: NodeLost reports it, its index is kept for a minute, the others are not disturbed, and it joins again" {
	formed removed 0 3
	local pid
	pid=$(imex_pid 0)
	k delete node node-3 --grace-period=0 --force >/dev/null 2>&1
	eventually 20 eval '[[ $(condition removed Ready reason) == NodeLost ]]'
	for_seconds 30 lists removed node-3
	eventually 150 lists_no_more removed node-3
	eventually 30 event_contains ComputeDomain/removed "Node node-3 has left"
	[[ $(imex_pid 0) == "$pid" ]]
	"$cluster/kubelet" 3 restart
	worker again removed 3
	running again 180
	eventually 60 domain_field_is removed .status.nodesReady 2
	[[ $(imex_pid 0) == "$pid" ]]
}
# lists NAME NODE: the fabric object has an assignment of the node for the ComputeDomain, in whatever state.
# lists_no_more: it has none.
lists() { domain_of_fabric "$1" | jq -e --arg node "$2" 'any(.assignments[]; .node == $node)' >/dev/null; }
lists_no_more() { domain_of_fabric "$1" | jq -e --arg node "$2" 'all(.assignments[]; .node != $node)' >/dev/null; }
