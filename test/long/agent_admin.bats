#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What administrators do to nodes with agents (imex.agents=true): cordon, drain, reboot, an nvidia-imex of the host's own, a helm rollback; and Jobs
# that are tried again while their node is about to leave.

load ../cluster/driver
load ../cluster/agents
nodes=3

setup_file() {
	with_agents
	eventually 90 agents_idle $nodes
}
teardown_file() { without_agents; }
setup() { ns_begin; }
teardown() {
	k uncordon node-0 node-1 node-2 >/dev/null
	"$cluster/host-imex" all stop
	knob 0 STOP_DELAY_MS=
	ns_end && eventually 60 agents_idle $nodes
}
agent_pod() { k -n "$driver_ns" get pods -l $agents --field-selector "spec.nodeName=node-$1" -o json | jq -r '[.items[] | select(.metadata.deletionTimestamp | not)][0].metadata.name'; }
agent_field() { k -n "$driver_ns" get pod "$(agent_pod "$1")" -o json | jq -r "$2"; }
state_is() { [[ $(agent_field "$1" '.metadata.annotations["imex.resource.nvidia.com/state"]') == "$2" ]]; }
# open_devices K: which device files of NVIDIA's the agent of a node, or what it has started, has open.
open_devices() {
	local pid
	for pid in $(pids_of_pod "$driver_ns" "$(agent_pod "$1")" '(compute-domain-agent|nvidia-imex)'); do
		find "/proc/$pid/fd" -type l -exec readlink {} +
	done | grep '^/dev/nvidia' || true
}
formed() { # NAME NODE...
	local name=$1 node
	shift
	domain "$name"
	for node; do worker "$name-$node" "$name" "$node"; done
	for node; do running "$name-$node" 90; done
}

@test "a node is cordoned and drained: nobody's IMEX ends before its pod, then it is idle with no GPU open, the others go on, and it comes back" {
	formed busy 0 1
	local first second uid
	first=$(imex_pid 0) second=$(imex_pid 1) uid=$(agent_field 1 .metadata.uid)
	k cordon node-1 >/dev/null
	for_seconds 5 test -d "/proc/$second"
	has_channel busy-1
	k drain node-1 --ignore-daemonsets --force --delete-emptydir-data --timeout=60s >/dev/null 2>&1
	eventually 30 seats_are busy "node-0 0,"
	eventually 30 state_is 1 IDLE
	[[ -z $(imex_pid 1) && -z $(open_devices 1) ]]
	[[ $(agent_field 1 .metadata.uid) == "$uid" && $(imex_pid 0) == "$first" ]]
	k uncordon node-1 >/dev/null
	worker again busy 1
	running again
	[[ $(agent_field 1 .metadata.uid) == "$uid" && $(imex_pid 0) == "$first" ]]
}

@test "the agent itself opens no device of NVIDIA's, idle or in a domain" {
	[[ -z $(open_devices 2) ]]
	formed d 2
	local pid
	pid=$(pids_of_pod "$driver_ns" "$(agent_pod 2)" compute-domain-agent)
	[[ -n $pid ]]
	[[ -z $(find "/proc/$pid/fd" -type l -exec readlink {} + | grep '^/dev/nvidia') ]]
}

@test "the host's own nvidia-imex is in the way of an agent: it is said, crash-loops nothing, and the domain forms when that is stopped" {
	"$cluster/host-imex" 0 start
	domain d
	worker a d 0
	eventually 60 node_event 0 "stop and disable the host's nvidia-imex.service" HostIMEXInTheWay
	eventually 60 event_says ComputeDomain/d "owns the driver's only IMEX session"
	[[ $(agent_field 0 '.status.containerStatuses[0].restartCount') == 0 ]]
	"$cluster/host-imex" 0 stop
	running a 150
	has_channel a
}
node_event() {
	k -n default get events -o json | jq -e --arg node "node-$1" --arg text "$2" --arg reason "$3" \
		'any(.items[]; .involvedObject.name == $node and .reason == $reason and (.message | contains($text)))' >/dev/null
}

@test "a Job is tried again at one moment or another of its node's leaving: its pod gets its channel, and no IMEX ends under it" {
	local i pid
	# Between the word that it leaves and its end there is time for a claim to come.
	knob 0 STOP_DELAY_MS=700
	formed retried 0
	for i in 0 1 2 3 4 5 6 8 10 14 20 30; do
		k -n "$ns" delete pods --all --grace-period=0 >/dev/null 2>&1
		read -rt "0.$(printf %02d $((i * 3)))" <> <(:) || true
		worker "try-$i" retried 0
		running "try-$i" 150
		pid=$(imex_pid 0)
		[[ -n $pid ]]
		for_seconds 2 test -d "/proc/$pid"
		has_channel "try-$i"
	done
	knob 0 STOP_DELAY_MS=
	[[ $(seats retried) == "node-0 "* && $(seats retried | wc -l) == 1 ]]
}

@test "a node with an agent loses its power under a pod: IMEX waits for nobody afterwards, and pod and domain are well again" {
	formed strong 0 1
	local other
	other=$(imex_pid 1)
	"$cluster/power" 0 off
	"$cluster/power" 0 on
	ready_again() { [[ $(agent_field 0 '.metadata.annotations["imex.resource.nvidia.com/ready"]') == true && -n $(imex_pid 0) ]]; }
	eventually 150 ready_again
	eventually 60 domain_field_is strong .status.status Ready
	eventually 60 runs_again
	[[ $(imex_pid 1) == "$other" ]]
	seats_are strong "node-0 0,node-1 1,"
}
runs_again() { has_channel strong-0 2>/dev/null; }

@test "helm rollback under load: no pid of IMEX changes" {
	formed kept 0 1
	local before
	before="$(imex_pid 0) $(imex_pid 1)"
	with_agents true --set logVerbosity=5
	"$cluster/helm" rollback compute-domains --namespace "$driver_ns" --wait --timeout 120s >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
	[[ "$(imex_pid 0) $(imex_pid 1)" == "$before" ]]
	has_channel kept-0
	has_channel kept-1
	worker more kept 2
	running more 90
	[[ "$(imex_pid 0) $(imex_pid 1)" == "$before" ]]
}
