#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Failures of a node's daemon and of its IMEX under a pod.

load ../cluster/driver
load ../cluster/domains

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	"$cluster/gpu" 0 CLIQUE_ID=1
	ns_end
}

clique_is() { [[ $(daemon_field "$1" '.metadata.labels["resource.nvidia.com/computeDomain.cliqueID"]') == *."$2" ]]; }

# failure: plugins and controllers restart under pods -> every IMEX in use keeps its process [upgrade]
@test "plugins and controllers are restarted, and the chart is upgraded under pods: every IMEX keeps its process under a prepared claim" {
	formed busy 0 1
	local before daemons node
	before=$(imex_pids 0 1)
	daemons="$(daemon_identity 0) $(daemon_identity 1)"
	[[ $(wc -l <<<"$before") == 2 ]]
	k -n "$driver_ns" delete pods -l app=compute-domain-kubelet-plugin --wait >/dev/null
	k -n "$driver_ns" delete pod "$(leader_pod)" --grace-period=0 --force >/dev/null 2>&1
	with_driver 4 --set logVerbosity=5
	for node in 0 1; do has_channel "busy-$node"; done
	[[ $(imex_pids 0 1) == "$before" && "$(daemon_identity 0) $(daemon_identity 1)" == "$daemons" ]]
}

# failure: a daemon is killed under a pod -> its container returns with the same address and assignment
# bats test_tags=matrix
@test "a daemon is killed under a pod: its container restarts in the same Pod, with the same address and assignment" {
	formed killed 0 1
	local was address had
	was=$(assignment 0) address=$(daemon_field 0 .status.podIP) had=$(daemon_restarts 0)
	[[ -n $was ]]
	kill_in_pod "$driver_ns" "$(daemon_pod 0)" compute-domain-daemon
	eventually 60 daemon_restarted 0 "$had"
	eventually 60 daemon_is_ready 0
	eventually 30 assignment_is 0 "$was"
	[[ $(daemon_field 0 .status.podIP) == "$address" ]]
	ready killed
	eventually 60 condition_is killed PeersConnected True
	has_channel killed-0
	[[ $(k -n "$ns" get pod killed-0 -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

# failure: nvidia-imex is killed under a pod -> the daemon restarts it, and IMEX of other nodes continues
#   [imex]
@test "IMEX is killed under a pod: the daemon restarts it with the same assignment, and IMEX of the other node continues" {
	formed hurt 0 1
	local was mine other before
	was=$(assignment 0) before=$(daemon_identity 0)
	mine=$(imex_pid 0)
	other=$(imex_pid 1)
	kill_in_pod "$driver_ns" "$(daemon_pod 0)" nvidia-imex
	eventually 30 imex_is_another 0 "$mine"
	eventually 60 daemon_is_ready 0
	eventually 30 assignment_is 0 "$was"
	[[ $(imex_pid 1) == "$other" && $(daemon_identity 0) == "$before" ]]
	ready hurt
	[[ $(imex_ctl 0 -q) == READY ]]
	# As node-1's own nvidia-imex reports it.
	eventually 60 connected_to 1 0
}

# failure: the Pod of a daemon is deleted under a pod -> IMEX continues until the pod has ended
# bats test_tags=matrix
@test "the Pod of a daemon is deleted under a pod: IMEX continues, the node takes no new ComputeDomain, and another daemon starts when the pod has ended" {
	formed kept 0 1
	local pids uid pod
	pids=$(imex_pids 0 1)
	pod=$(daemon_pod 0)
	uid=$(daemon_field 0 .metadata.uid)
	k -n "$driver_ns" delete pod "$pod" --wait=false >/dev/null
	for_seconds 5 eval '[[ $(pids_of_pod "$driver_ns" '"$pod"' nvidia-imex) == '"$(head -1 <<<"$pids")"' ]]'
	has_channel kept-0
	[[ $(imex_pid 1) == "$(tail -1 <<<"$pids")" ]]
	k -n "$ns" delete pod kept-0 >/dev/null
	eventually 60 another_daemon 0 "$uid"
	worker again kept 0
	running again 90
	[[ $(imex_pid 1) == "$(tail -1 <<<"$pids")" ]]
	ready kept
	eventually 60 condition_is kept PeersConnected True
}
another_daemon() {
	local now
	now=$(daemon_field "$1" .metadata.uid) && [[ -n $now && $now != "$2" ]]
}

# It depends on the kubelet whether it ends the daemon's container at once or after its grace period. So an IMEX may
# run that no object refers to.
# failure: the Pod of a daemon is force-deleted -> no other node gets its index, and the next daemon joins
#   [force-deleted]
@test "the Pod of a daemon is force-deleted under a pod: no other node gets its index, and the next daemon joins again with another address" {
	formed forced 0 1
	local uid other before
	uid=$(daemon_field 0 .metadata.uid) other=$(imex_pid 1)
	before=$(daemon_field 0 .status.podIP)
	k -n "$driver_ns" delete pod "$(daemon_pod 0)" --grace-period=0 --force >/dev/null 2>&1
	eventually 30 event_contains ComputeDomain/forced "Node node-0 is not ready any more"
	worker more forced 2
	running more 90
	for_seconds 10 has_index forced node-0 0
	[[ $(imex_pid 1) == "$other" ]]
	k -n "$ns" delete pod forced-0 >/dev/null
	eventually 120 has_reported 0 "$uid"
	worker again forced 0
	running again 150
	has_channel again
	[[ $(daemon_field 0 .status.podIP) != "$before" && $(imex_pid 1) == "$other" ]]
	eventually 60 connected_to 1 0
	ready forced
	eventually 60 condition_is forced PeersConnected True
}
# has_index NAME NODE INDEX: only this node has the index, in whatever state its assignment is.
has_index() { domain_of_fabric "$1" | jq -e --arg node "$2" --argjson index "$3" '[.assignments[] | select(.index == $index).node] == [$node]' >/dev/null; }
# has_reported K UID: the node has a daemon with another UID, which has written a report.
has_reported() { another_daemon "$1" "$2" && [[ -n $(daemon_annotation "$1" report) ]]; }

# failure: a tenant requests daemon-0 while a daemon is replaced -> its claim template is denied [tenants]
@test "a tenant's claim template for daemon-0 is denied while a daemon is replaced" {
	local try uid
	uid=$(daemon_field 0 .metadata.uid)
	k -n "$driver_ns" delete pod "$(daemon_pod 0)" --wait=false >/dev/null
	for try in 1 2 3; do
		run claimed_by_hand "thief-$try" "$(config $daemon_domain ComputeDomainDaemonConfig)" compute-domain-daemon.nvidia.com
		[[ $output == *"is for the IMEX daemons that the driver starts itself"* ]]
	done
	eventually 60 daemons_idle 4
	[[ $(daemon_field 0 .metadata.uid) != "$uid" ]]
	k -n "$ns" delete pods --all >/dev/null # the pods have no claim template
	formed after 0 1
}

# The last test, because the plugin notices the next change only half a minute later.
# failure: an idle node gets another partition -> its daemon serves the new one
@test "a node gets another partition: its idle daemon restarts in the same Pod, and serves the new one" {
	local had uid
	had=$(daemon_restarts 0) uid=$(daemon_field 0 .metadata.uid)
	"$cluster/gpu" 0 CLIQUE_ID=7
	eventually 120 daemon_restarted 0 "$had"
	eventually 60 clique_is 0 7
	[[ $(daemon_field 0 .metadata.uid) == "$uid" ]]
	eventually 60 daemons_idle 4
	formed again 0 1
}
