#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Agents that run the IMEX of ComputeDomains (imex.agents=true), and what may happen to a node of theirs.

load driver

agents=app.kubernetes.io/component=compute-domain-agent

with_agents() {
	with_driver 4 --set resources.computeDomains.imex.agents=true "$@"
	eventually 90 agents_are_there 4
}
setup_file() { with_agents; }
# Agents that nobody needs go, so that the next file finds what it expects.
teardown_file() {
	with_driver 4
	eventually 120 agents_are_there 0 && eventually 60 daemon_pods_gone && forget_agents
}
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || { diagnose; k get computedomainfabrics -o json | jq -c '.items[].domains'; } 2>&1 | cut -c1-600
	"$cluster/gpu" 0 CLIQUE_ID=1
	empty_namespace
	eventually 60 no_seats && eventually 30 agents_are_there 4
}
for_both() {
	local do=$1
	shift
	"$do" 0 "$@" && "$do" 1 "$@"
}

agents_are_there() { [[ $(k -n "$driver_ns" get pods -l "$agents" -o json | jq '[.items[] | select(.metadata.deletionTimestamp | not) | select(any(.status.conditions[]?; .type == "Ready" and .status == "True"))] | length') == "$1" ]]; }
no_seats() { k get computedomainfabrics -o json | jq -e 'all(.items[]; (.domains // []) | length == 0)' >/dev/null; }
agent_pod() { k -n "$driver_ns" get pods -l "$agents" --field-selector "spec.nodeName=node-$1" -o json | jq -r '[.items[] | select(.metadata.deletionTimestamp | not)][0].metadata.name'; }
agent_field() { k -n "$driver_ns" get pod "$(agent_pod "$1")" -o json | jq -r "$2"; }
seat() { agent_field "$1" '.metadata.annotations["imex.resource.nvidia.com/seat"] // ""'; }
seat_is() { [[ $(seat "$1") == "$2" ]]; }
agent_is_ready() { [[ $(agent_field "$1" '.metadata.annotations["imex.resource.nvidia.com/ready"]') == true ]]; }
restarts() { agent_field "$1" '.status.containerStatuses[0].restartCount'; }
restarted() { [[ $(restarts "$1") -gt $2 ]]; }
clique_is() { [[ $(agent_field "$1" '.metadata.labels["resource.nvidia.com/computeDomain.cliqueID"]') == *."$2" ]]; }
imex_pid() { pids_of_pod "$driver_ns" "$(agent_pod "$1")" nvidia-imex; }
imex_is_another() { local now; now=$(imex_pid "$1") && [[ -n $now && $now != "$2" ]]; }
# formed NAME: a ComputeDomain of that name with a pod on each of the two nodes, NAME-0 and NAME-1.
formed() {
	domain "$1" 2
	worker "$1-0" "$1" 0
	worker "$1-1" "$1" 1
	running "$1-0" && running "$1-1" && eventually 30 domain_field_is "$1" .status.status Ready
}

@test "the plugin is restarted, the controllers too, and the chart is upgraded under load: no pid of IMEX changes under a grant" {
	formed busy
	local before pods k
	before=$(for_both imex_pid)
	pods=$(k -n "$driver_ns" get pods -l "$agents" -o jsonpath='{.items[*].metadata.uid}')
	[[ $(wc -l <<<"$before") == 2 ]]
	k -n "$driver_ns" delete pods -l app=compute-domain-kubelet-plugin --wait >/dev/null
	k -n "$driver_ns" delete pod "$(leader_pod)" --grace-period=0 --force >/dev/null 2>&1
	with_agents --set logVerbosity=5
	for k in 0 1; do has_channel "busy-$k"; done
	[[ $(for_both imex_pid) == "$before" ]]
	for k in 0 1; do [[ $pods == *"$(agent_field $k .metadata.uid)"* ]]; done
}

@test "an agent is killed under a pod: its container comes back in the same pod, with the same address and seat" {
	formed killed
	local was address had
	was=$(seat 0) address=$(agent_field 0 .status.podIP) had=$(restarts 0)
	[[ -n $was ]]
	kill_in_pod "$driver_ns" "$(agent_pod 0)" compute-domain-agent
	eventually 60 restarted 0 "$had"
	eventually 60 agent_is_ready 0
	eventually 30 seat_is 0 "$was"
	[[ $(agent_field 0 .status.podIP) == "$address" ]]
	eventually 60 domain_field_is killed .status.status Ready
	has_channel killed-0
}

@test "IMEX is killed under a pod: the agent starts it again in the same seat, and the other node's goes on" {
	formed hurt
	local was mine other
	was=$(seat 0) mine=$(imex_pid 0) other=$(imex_pid 1)
	kill_in_pod "$driver_ns" "$(agent_pod 0)" nvidia-imex
	eventually 30 imex_is_another 0 "$mine"
	eventually 60 agent_is_ready 0
	eventually 30 seat_is 0 "$was"
	[[ $(imex_pid 1) == "$other" ]]
	eventually 60 domain_field_is hurt .status.status Ready
}

@test "domains follow each other on the same nodes, back to back, and nobody meets a foreign node list" {
	local d since
	since=$(date -u +%FT%TZ)
	formed first
	for d in second third; do
		domain "$d" 2
		k -n "$ns" delete pods --all --grace-period=0 --wait=false >/dev/null
		worker "$d-0" "$d" 0
		worker "$d-1" "$d" 1
		running "$d-0" 90 && running "$d-1" 90
		eventually 30 domain_field_is "$d" .status.status Ready
		[[ $(seat 0) == *"/$(domain_uid "$d")/"* && $(seat 1) == *"/$(domain_uid "$d")/"* ]]
	done
	if k -n "$driver_ns" logs -l "$agents" --since-time="$since" --tail=-1 | grep -i "map mismatch"; then false; fi
}

@test "daemon-0 is not a tenant's, also not while an agent is replaced" {
	local try uid
	uid=$(agent_field 0 .metadata.uid)
	k -n "$driver_ns" delete pod "$(agent_pod 0)" --wait=false >/dev/null
	for try in 1 2 3; do
		run claimed_by_hand "thief-$try" '{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomainAgentConfig}' compute-domain-daemon.nvidia.com
		[[ $output == *"compute-domain-daemon.nvidia.com"* && $output == *denied* || $output == *forbidden* ]]
	done
	eventually 60 agents_are_there 4
	[[ $(agent_field 0 .metadata.uid) != "$uid" ]]
	formed after
}

# Last, because the node finds back by itself only half a minute later.
@test "a node is partitioned anew: its idle agent starts anew in the same pod, and serves the new clique" {
	local had uid
	had=$(restarts 0) uid=$(agent_field 0 .metadata.uid)
	"$cluster/gpu" 0 CLIQUE_ID=7
	eventually 120 restarted 0 "$had"
	eventually 60 clique_is 0 7
	[[ $(agent_field 0 .metadata.uid) == "$uid" ]]
	eventually 60 agents_are_there 4
	formed again
}
