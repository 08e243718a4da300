#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `kubectl compute-domains why` about pods that get no node, with the real scheduler and driver: with admin rights, and
# with the role `view` in one namespace. The chart allocates GPUs, and a device plugin offers the same GPUs.
# why_nodes.bats is about pods with a node.

load driver
load domains
load why

setup_file() { with_driver 4 --set resources.gpus.enabled=true; }
setup() { ns_begin; viewer; }
teardown() {
	if [[ ${moved:-} ]]; then
		"$cluster/gpu" 3 FABRIC_STATE=3
		partitions 1 1
	fi
	k -n "$ns" delete pods --all --force --grace-period=0 >/dev/null 2>&1
	[[ -z ${other:-} ]] || k delete namespace "$other" >/dev/null
	ns_end && eventually 60 daemons_idle 4
}
pool=6f1c3c0e-8d0b-4c5c-9b59-0a1f3c5d7e90

# bats test_tags=long
@test "all channels are in use: an admin sees the users, and a viewer the possible causes" {
	local i
	other=$ns-other
	k create namespace "$other" >/dev/null
	ns=$other domain llm
	for i in 0 1 2 3; do worker "w-$i" llm "$i" "$other"; done
	for i in 0 1 2 3; do ns=$other running "w-$i" 90; done
	domain bench
	waiting any bench
	worker here bench 2
	unscheduled any
	unscheduled here
	why pod/any
	named NoFreeChannel user "no free channel: 4 of 4 on $pool.1 in use (4 $other/llm)" "Wait until a pod with a channel ends, or use fewer nodes."
	why pod/here
	named NoFreeChannel user "no free channel: 1 of 1 on node-2 in use (1 $other/llm)"
	confined any bench NoFreeChannel NoChannelOffered
	# No name of the other namespace.
	[[ $answer != *"$other"* ]]
	# The text for people.
	[[ $("$cluster/kubectl" compute-domains why any -n "$ns") == *$'\nCAUSE  no free channel: '*$'\nFIX    Wait until '*$'\nWHO    you' ]]
}

@test "a misspelt claim template is compared with those that exist, also with the role view" {
	domain training
	eventually 30 k -n "$ns" get resourceclaimtemplate training -o name >/dev/null
	waiting a trainning
	eventually 30 event_contains Pod/a "not found"
	for who in why as_viewer; do
		$who pod/a
		named ClaimTemplateNotFound user "no claim template \"trainning\" in namespace $ns; \"training\" exists" \
			'correct resourceClaimTemplateName of the pod: "training"'
	done
}

@test "GPUs are not free, or offered twice: the message of the scheduler is explained, also with the role view" {
	domain d
	waiting many d '' 5
	waiting twice d '' 4
	unscheduled many
	eventually 30 event_contains Pod/twice "nil or empty request mappings"
	for who in why as_viewer; do
		$who pod/many
		named GPUsNotFree user "the scheduler finds no node with enough GPUs: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.*"
		$who pod/twice
		named GPUsOfferedTwice "cluster admin" "both a device plugin and the device class gpu.nvidia.com offer nvidia.com/gpu" \
			"Install with \`resources.gpus.extendedResourceName=\`, or remove the device plugin.*"
	done
}

# bats test_tags=long
@test "the partition of the other pods is full, and later one node withholds its channel" {
	local i full empty=7
	moved=yes
	partitions 1 7
	domain bench
	for i in 0 1 2; do
		waiting "train-$i" bench "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {job-name: bench}}, topologyKey: nvidia.com/gpu.clique}]}}"
		((i == 2)) || running "train-$i" 90
	done
	unscheduled train-2
	full=$(k -n "$ns" get pod train-0 -o jsonpath='{.spec.nodeName}')
	[[ $full == node-[01] ]] && full=1 || full=7 empty=1
	why pod/train-2
	named PartitionFull user "2 of 3 pods run on $pool.$full, where no channel is free (2 of 2 in use: 2 $ns/bench); $pool.$empty has 2 free" \
		"delete the workload and create it again: its first pod chooses the partition again"
	confined train-2 bench NoFreeChannel NoChannelOffered PartitionFull
	why job/bench
	named PartitionFull user "2 of 3 pods run on *"

	"$cluster/gpu" 3 FABRIC_STATE=2
	k -n "$driver_ns" delete pod "$(plugin_pod 3)" >/dev/null
	plugins_settle
	k -n "$ns" delete pods --all --force --grace-period=0 >/dev/null 2>&1
	worker slow bench 3
	eventually 60 why_is pod/slow FabricRegistering
	named FabricRegistering hardware "node-3 withholds the channel: FabricRegistering: GPU GPU-*: its fabric registration is in progress*"
	confined slow bench NoFreeChannel NoChannelOffered
	why node/node-3
	named FabricRegistering hardware "node-3 withholds its channel: FabricRegistering: *"
	as_viewer node/node-3 2>/dev/null
	[[ $code == 3 ]]
}
