#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A domain that the Go driver formed, and agents (imex.agents=true) beside it: it keeps its daemon pods, grows onto nodes that had an agent, and
# survives what befalls its daemons; agents come when it has ended. Each test goes on where the one before it has ended.

load ../cluster/driver
ns=from-go-agents
load ../cluster/from_go

agents=app.kubernetes.io/component=compute-domain-agent

setup_file() { go_is_here; }
teardown() { [[ -n ${BATS_TEST_COMPLETED:-} ]] || { diagnose; k get computedomainfabrics -o json | jq -c '.items[].domains'; } 2>&1 | cut -c1-600; }
# Agents outlive their release, so that they have to be told to go before it does.
teardown_file() {
	k -n $ns delete computedomains,pods --all --wait=false --grace-period=0 >/dev/null 2>&1 || true
	helm upgrade dra "$checkout/deploy/chart/compute-domains" --namespace $driver_ns --reuse-values --set resources.computeDomains.imex.agents=false \
		--wait --timeout 120s >/dev/null || true
	eventually 120 agents_on '' || true
	forget_agents || true
	go_is_gone
}

agents_on() {
	[[ $(k -n $driver_ns get pods -l $agents -o json | jq -r '[.items[] | select(.status.containerStatuses[0].ready and
		(.metadata.deletionTimestamp | not)) | .spec.nodeName] | sort | join(" ")') == "$1" ]]
}
# imex_pid K: of the nvidia-imex on a node, whoever runs it.
imex_pid() {
	local pod
	for pod in $(k -n $driver_ns get pods -o json | jq -r --arg node "node-$1" '.items[] | select(.spec.nodeName == $node and
		(.metadata.labels | has("resource.nvidia.com/computeDomain") or .app == "imex-daemon")) | .metadata.name'); do
		pids_of_pod $driver_ns "$pod" nvidia-imex
	done
}
imex_is() { [[ $(imex_pid "$1") == "$2" ]]; }
indices() { domain_field train 'range .status.nodes[*]}{.name}{"="}{.index}{"\n"}{end' | sort | xargs; }
indices_are() { [[ $(indices) == "$1" ]]; }

@test "a domain of the Go driver on two nodes goes on under our chart with agents, which come to the other nodes only" {
	domain train
	worker one train 0
	worker two train 1
	running one
	running two
	eventually 30 domain_field_is train .status.nodes[*].status "Ready Ready"
	is_go 0 && is_go 1
	local first second
	first=$(imex_pid 0) second=$(imex_pid 1)
	[[ -n $first && -n $second ]]
	helm upgrade dra "$checkout/deploy/chart/compute-domains" --namespace $driver_ns --reuse-values --set nameOverride=dra-driver-nvidia-gpu \
		--set resources.gpus.enabled=false --set image.repository=compute-domains/compute-domains --set image.tag=v0.1.0 \
		--set resources.computeDomains.imex.agents=true --wait --timeout 120s >/dev/null
	eventually 90 agents_on "node-2 node-3"
	imex_is 0 "$first"
	imex_is 1 "$second"
	[[ $(indices) == "node-0=0 node-1=1" ]]
	echo "$first $second" >"$BATS_FILE_TMPDIR/pids"
}

@test "it grows onto a node that had an agent, by a daemon pod of ours: the idle agent yields, and another domain has agents" {
	local first second
	read -r first second <"$BATS_FILE_TMPDIR/pids"
	worker three train 2
	# A Prepare that fails once costs the pod up to a minute and a half until the kubelet's next.
	running three 150
	has_channel three
	is_ours 2
	eventually 30 agents_on node-3
	eventually 60 indices_are "node-0=0 node-1=1 node-2=2"
	eventually 60 domain_field_is train .status.nodesReady 3
	domain new
	worker near new 3
	running near
	no_daemon 3
	imex_is 0 "$first"
	imex_is 1 "$second"
}

@test "its Go daemon pod is deleted under its pod: it comes back with its index, the others go on, and no agent comes in between" {
	local first pod uid
	first=$(imex_pid 0) uid=$(daemons 1 | cut -d' ' -f2)
	pod=$(daemons 1 | cut -d' ' -f1)
	k -n $driver_ns delete pod "$pod" >/dev/null
	another_daemon() { [[ $(daemons 1 | wc -l) == 1 && $(daemons 1 | cut -d' ' -f2) != "$uid" && -n $(imex_pid 1) ]]; }
	eventually 120 another_daemon
	agents_on node-3
	eventually 120 domain_field_is train .status.nodesReady 3
	indices_are "node-0=0 node-1=1 node-2=2"
	imex_is 0 "$first"
}

@test "a node of it loses its power, and is back in the domain with a daemon pod and its index" {
	local first
	first=$(imex_pid 0)
	"$cluster/power" 1 off
	"$cluster/power" 1 on
	back() { [[ $(daemons 1 | wc -l) == 1 && -n $(imex_pid 1) ]]; }
	eventually 150 back
	eventually 150 domain_field_is train .status.nodesReady 3
	indices_are "node-0=0 node-1=1 node-2=2"
	imex_is 0 "$first"
	agents_on node-3
}

@test "when it has ended each node has an agent, and a domain of all nodes forms by them" {
	k -n $ns delete pods,computedomains --all --timeout=120s >/dev/null
	eventually 120 agents_on "node-0 node-1 node-2 node-3"
	[[ -z $(k -n $driver_ns get daemonsets -l $uid_label -o name) ]]
	domain all
	local i
	for i in 0 1 2 3; do worker "all-$i" all $i; done
	for i in 0 1 2 3; do running "all-$i" 90; done
	[[ -z $(daemons) ]]
	k -n $ns delete pods,computedomains --all --timeout=120s >/dev/null
}
