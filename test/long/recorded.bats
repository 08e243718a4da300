#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What Kubernetes does with daemons, their claims and nodes, without this driver's controllers: the files in
# test/simulate/recorded, which are compared with the simulated world (test/simulate/recorded.py). RECORD=yes writes
# them from this cluster.

load ../cluster/driver
nodes=4

setup_file() {
	with_driver $nodes
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	eventually 60 no_controller
}
teardown() {
	[[ -z ${recorder:-} ]] || kill "$recorder" 2>/dev/null || true
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || repair
}
repair() {
	"$cluster/power" 3 off
	"$cluster/power" 3 on
}
teardown_file() {
	"$cluster/kubelet" 3 restart
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
}

# record EVENT: records the changes of node-3 from now on, until compared.
record() {
	event=$1 lines=$BATS_TEST_TMPDIR/lines
	coproc RECORDER { exec python3 -B "$cluster/record.py" "$cluster/kubectl" "$driver_ns" node-3 "$lines"; }
	recorder=$RECORDER_PID
	read -ru "${RECORDER[0]}" _
}
# compared: waits until nothing has changed for five seconds, and compares the changes with the recorded ones.
compared() {
	local file=$checkout/test/simulate/recorded/$event
	kill "$recorder"
	wait "$recorder"
	recorder=
	python3 -B "$checkout/test/simulate/recorded.py" --normalize <"$lines" >"$lines.now"
	if [[ -n ${RECORD:-} ]]; then
		mkdir -p "${file%/*}"
		cp "$lines.now" "$file"
	fi
	diff "$file" "$lines.now"
}
# The condition differs from containerStatuses after Kubernetes has set it to False, because the node did not answer.
daemon_runs() {
	local now='"\(.metadata.deletionTimestamp) \(.status.phase) \(.status.containerStatuses[0].ready) \(.status.conditions[] | select(.type == "Ready").status)"'
	[[ $(daemon_field 3 "$now" 2>/dev/null) == "null Running true True" ]]
}
other_daemon_runs() { daemon_runs && [[ $(daemon_field 3 .metadata.uid) != "$1" ]]; }
has_no_daemon() { [[ -z $(daemon_pod 3 2>/dev/null) ]]; }
node_is() { [[ $(k get node node-3 -o json | jq -r '.status.conditions[] | select(.type == "Ready").status') == "$1" ]]; }
label_node() { k label node node-3 "$daemon_label=true" >/dev/null; }
wanted() {
	label_node
	eventually 120 daemon_runs
}
delete_node() {
	k delete node node-3 --wait=false >/dev/null
	eventually 180 has_no_daemon
}
# The kubelet registers the Node again when it starts.
registered() {
	eventually 120 node_is True
	eventually 120 slice_is_there
}
slice_is_there() { k get resourceslices -o json | jq -e '.items[] | select(.spec.nodeName == "node-3" and .spec.driver == "compute-domain.nvidia.com")' >/dev/null; }

@test "label removed: the daemon's Pod is deleted" {
	wanted
	record label-removed
	k label node node-3 "$daemon_label-" >/dev/null
	eventually 60 has_no_daemon
	compared
}

@test "daemon wanted: its Pod is created, its claim is allocated, and it runs" {
	record daemon-wanted
	wanted
	compared
}

@test "daemon deleted: the next one is created after it" {
	wanted
	local uid
	uid=$(daemon_field 3 .metadata.uid)
	record daemon-deleted
	k -n "$driver_ns" delete pod "$(daemon_pod 3)" --wait=false >/dev/null
	eventually 60 other_daemon_runs "$uid"
	compared
}

@test "daemon force-deleted: the next one is created at once" {
	wanted
	local uid
	uid=$(daemon_field 3 .metadata.uid)
	record daemon-force-deleted
	k -n "$driver_ns" delete pod "$(daemon_pod 3)" --grace-period=0 --force >/dev/null 2>&1
	eventually 60 other_daemon_runs "$uid"
	compared
}

@test "daemon killed: its container is started again" {
	wanted
	local count
	count=$(daemon_restarts 3)
	record daemon-killed
	kill_in_pod "$driver_ns" "$(daemon_pod 3)" compute-domain-daemon
	eventually 120 daemon_restarted 3 "$count"
	eventually 60 daemon_runs
	compared
}

@test "node rebooted: the same Pod runs again" {
	wanted
	local count
	count=$(daemon_restarts 3)
	record node-rebooted
	"$cluster/power" 3 off
	"$cluster/power" 3 on
	eventually 120 daemon_restarted 3 "$count"
	eventually 60 daemon_runs
	compared
}

@test "node powered off: it is not ready, and the same Pod runs again" {
	wanted
	local count
	count=$(daemon_restarts 3)
	record node-powered-off
	"$cluster/power" 3 off
	eventually 120 node_is Unknown
	for_seconds 10 true
	"$cluster/power" 3 on
	eventually 120 daemon_restarted 3 "$count"
	eventually 60 daemon_runs
	compared
}

@test "node cut off: it is not ready, and the same Pod continues" {
	wanted
	record node-cut-off
	"$cluster/link" 3 down
	eventually 120 node_is Unknown
	for_seconds 10 true
	"$cluster/link" 3 up
	eventually 120 node_is True
	eventually 60 daemon_runs
	compared
}

@test "template missing: the next Pod waits for its claim" {
	wanted
	local template
	template=$(k -n "$driver_ns" get resourceclaimtemplate compute-domain-daemon -o json | jq 'del(.metadata.uid, .metadata.resourceVersion,
		.metadata.creationTimestamp, .metadata.deletionTimestamp, .metadata.deletionGracePeriodSeconds)')
	record template-missing
	k -n "$driver_ns" patch resourceclaimtemplate compute-domain-daemon --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
	k -n "$driver_ns" delete resourceclaimtemplate compute-domain-daemon >/dev/null
	k -n "$driver_ns" delete pod "$(daemon_pod 3)" >/dev/null
	eventually 60 daemon_is_pending
	for_seconds 5 true
	k create -f - <<<"$template" >/dev/null
	eventually 120 daemon_runs
	compared
}
daemon_is_pending() { k -n "$driver_ns" get pods -l "$daemon_selector" -o json | jq -e 'any(.items[]; .status.phase == "Pending")' >/dev/null; }

@test "node deleted: its Pods and its slice are collected" {
	wanted
	record node-deleted
	delete_node
	"$cluster/kubelet" 3 restart
	registered
	compared
}

@test "node deleted while off: the same" {
	wanted
	record node-deleted-while-off
	"$cluster/power" 3 off
	delete_node
	"$cluster/power" 3 on
	registered
	compared
}

# The last test: the controllers create the DaemonSet again.
@test "set deleted: its Pods are collected" {
	wanted
	record set-deleted
	k -n "$driver_ns" patch daemonset compute-domain-daemon --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
	k -n "$driver_ns" delete daemonset compute-domain-daemon >/dev/null
	eventually 60 has_no_daemon
	compared
}
