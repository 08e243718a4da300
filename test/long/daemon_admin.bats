#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Actions of administrators on nodes that run the IMEX of ComputeDomains: cordon, drain, reboot, an nvidia-imex of the
# host, helm rollback. Also Jobs that are retried while their node is about to leave.

load ../cluster/driver
load ../cluster/domains
nodes=3

setup_file() { with_driver $nodes; }
setup() { ns_begin; }
teardown() {
	k uncordon node-0 node-1 node-2 >/dev/null
	"$cluster/host-imex" all stop
	knob 0 STOP_DELAY_MS=
	ns_end && eventually 60 daemons_idle $nodes
}
uid_of() { daemon_field "$1" .metadata.uid; }
# open_devices K PROGRAMS: prints which NVIDIA device files these programs of the node's daemon have open.
open_devices() {
	local pid
	for pid in $(pids_of_pod "$driver_ns" "$(daemon_pod "$1")" "$2"); do
		find "/proc/$pid/fd" -type l -exec readlink {} +
	done | grep '^/dev/nvidia' || true
}

# failure: a node is cordoned -> IMEX and pods continue, and the node stays in its ComputeDomain [cordoned]
# failure: a node is drained -> IMEX ends after the last pod, then nothing has a GPU open [drained]
@test "a node is cordoned and drained: no IMEX ends before its pod, then the daemon is idle with no GPU open, the others are not disturbed, and the node comes back" {
	formed busy 0 1
	local first second uid
	first=$(imex_pid 0)
	second=$(imex_pid 1)
	uid=$(uid_of 1)
	k cordon node-1 >/dev/null
	for_seconds 5 test -d "/proc/$second"
	has_channel busy-1
	k drain node-1 --ignore-daemonsets --force --delete-emptydir-data --timeout=60s >/dev/null 2>&1
	eventually 30 assigned_are busy "node-0 0,"
	eventually 30 event_contains ComputeDomain/busy "Node node-1 has left"
	eventually 30 daemon_state_is 1 IDLE
	[[ -z $(imex_pid 1) && -z $(open_devices 1 '(compute-domain-daemon|nvidia-imex)') ]]
	[[ $(uid_of 1) == "$uid" && $(imex_pid 0) == "$first" ]]
	k uncordon node-1 >/dev/null
	worker again busy 1
	running again
	[[ $(uid_of 1) == "$uid" && $(imex_pid 0) == "$first" ]]
}

# failure: GPUs are to be reset, or the NVIDIA driver unloaded -> the daemon has no device open [daemon]
@test "the daemon itself opens no NVIDIA device, with and without a ComputeDomain" {
	[[ -z $(open_devices 2 '(compute-domain-daemon|nvidia-imex)') ]]
	formed d 2
	[[ -n $(pids_of_pod "$driver_ns" "$(daemon_pod 2)" compute-domain-daemon) ]]
	[[ -z $(open_devices 2 compute-domain-daemon) ]]
}

# failure: the host's own nvidia-imex blocks the daemon's -> Events report it until it is stopped [imex]
@test "the host's own nvidia-imex blocks that of the daemon: Events report it, no container restarts, and the ComputeDomain forms when it is stopped" {
	"$cluster/host-imex" 0 start
	domain d
	worker a d 0
	eventually 60 node_event 0 "stop and disable the host's nvidia-imex.service" HostIMEXConflict
	eventually 60 event_contains ComputeDomain/d "owns the driver's only IMEX session"
	[[ $(daemon_restarts 0) == 0 ]]
	"$cluster/host-imex" 0 stop
	running a 150
	has_channel a
}

# failure: a pod comes while its node leaves -> it gets its channel, and IMEX continues under it [daemon]
@test "a Job is retried at various moments while its node leaves: its pod gets its channel, and no IMEX ends under it" {
	local i pid
	# A claim can come between the report that the node leaves and the end of IMEX.
	knob 0 STOP_DELAY_MS=700
	formed retried 0
	for i in 0 1 2 3 4 5 6 8 10 14 20 30; do
		k -n "$ns" delete pods --all --grace-period=0 >/dev/null 2>&1
		read -rt "0.$(printf %02d $((i * 3)))" <> <(:) || true
		worker "try-$i" retried 0
		running "try-$i" 150
		pid=$(imex_pid 0)
		for_seconds 2 test -d "/proc/$pid"
		has_channel "try-$i"
	done
	knob 0 STOP_DELAY_MS=
	[[ $(assigned retried) == "node-0 "* && $(assigned retried | wc -l) == 1 ]]
}

# failure: a node is rebooted under a pod -> it gets a new epoch with its index, and pod and ComputeDomain
#   recover [rebooted]
@test "a node is rebooted under a pod: it gets a new epoch with its index, and pod and ComputeDomain recover" {
	formed strong 0 1
	local other before
	other=$(imex_pid 1)
	before=$(assignment 0)
	"$cluster/power" 0 off
	"$cluster/power" 0 on
	ready_again() { daemon_is_ready 0 && [[ $(assignment 0) != "$before" && -n $(imex_pid 0) ]]; }
	eventually 150 ready_again
	[[ $(assignment 0 | cut -d/ -f1-3) == "$(cut -d/ -f1-3 <<<"$before")" ]]
	eventually 30 disturbed strong node-0
	eventually 60 domain_field_is strong .status.status Ready
	eventually 60 runs_again
	[[ $(imex_pid 1) == "$other" ]]
	assigned_are strong "node-0 0,node-1 1,"
}
runs_again() { has_channel strong-0 2>/dev/null; }
# disturbed NAME NODE: an Event of the ComputeDomain reports that the node was not ready, or lost.
disturbed() {
	k -n "$ns" get events -o json | jq -e --arg name "$1" --arg node "Node $2 " 'any(.items[]; .involvedObject.name == $name and
		(.reason == "NodeNotReady" or .reason == "NodeLost") and (.message | startswith($node)))' >/dev/null
}

# failure: helm rollback under pods -> every IMEX in use keeps its process
@test "helm rollback under pods: every IMEX keeps its process" {
	formed kept 0 1
	local before
	before=$(imex_pids 0 1)
	with_driver $nodes --set logVerbosity=5
	"$cluster/helm" rollback compute-domains --namespace "$driver_ns" --wait --timeout 120s >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
	[[ $(imex_pids 0 1) == "$before" ]]
	has_channel kept-0
	has_channel kept-1
	worker more kept 2
	running more 90
	[[ $(imex_pids 0 1) == "$before" ]]
}
