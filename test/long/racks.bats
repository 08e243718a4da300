#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The ComputeDomain of a rack exists as soon as the rack joins (docs/how-to/racks.md). Nodes 0 and 1 are in
# S0-011-US-WEST-01A, nodes 2 and 3 in S0-012-US-WEST-01A.

load ../cluster/driver
load ../cluster/mpi

label=ds.coreweave.com/nvlink.domain
east=s0-011-us-west-01a west=s0-012-us-west-01a
schemas=$(. "$BATS_TEST_DIRNAME/../cluster/lib.bash" && echo "$schemas")
racks_on() {
	with_driver 4 --set resources.computeDomains.rackDomains.enabled=true \
		--set resources.computeDomains.rackDomains.nameFromNodeLabel="${label//./\\.}" "$@"
}

setup_file() {
	with_driver 4
	"$cluster/clique" 2 2
	"$cluster/clique" 3 2
	label_nodes
	racks_on
	k apply --server-side -f "$schemas" >/dev/null
	k wait --for=condition=Established --timeout=30s $(k get -f "$schemas" -o name) >/dev/null
}
teardown_file() {
	k delete --ignore-not-found -f "$schemas" >/dev/null
	"$cluster/clique" 2 1
	"$cluster/clique" 3 1
	with_driver 4
	k label nodes --all "$label-" >/dev/null
	k delete computedomains -A -l resource.nvidia.com/rack --timeout=60s >/dev/null
}
setup() { ns_begin; }
teardown() { ns_end; }

label_nodes() {
	k label --overwrite nodes node-0 node-1 "$label=S0-011-US-WEST-01A" >/dev/null
	k label --overwrite nodes node-2 node-3 "$label=S0-012-US-WEST-01A" >/dev/null
}
enable_racks() { k label namespace "$ns" resource.nvidia.com/rack-domains=enabled >/dev/null; }
rack_ready() { [[ $(k -n "$1" get cd "$2" -o jsonpath='{.status.status}') == Ready ]]; }
rack_gone() { prints_nothing k -n "$1" get cd "$2" --ignore-not-found -o name; }
rack_uid() { k -n "$1" get cd "$2" -o jsonpath='{.metadata.uid}'; }
rack_note() { k -n "$1" get cd "$2" -o json | jq -r --arg key "resource.nvidia.com/rack-$3" '.metadata.annotations[$key] // ""'; }
rack_note_is() { [[ $(rack_note "$1" "$2" "$3") == "$4" ]]; }
node_states() { k get resourceslices -o json | jq -e --arg node "node-$1" --arg rack "$2" 'any(.items[]; .spec.nodeName == $node and
	(.spec.devices | length > 0 and all((.attributes // .basic.attributes).rack.string == $rack)))' >/dev/null; }
node_of() { k -n "$ns" get pod "$1" -o jsonpath='{.spec.nodeName}'; }

# failure: the first node of a rack joins -> the rack gets its ComputeDomain
@test "a rack that joins gets a ComputeDomain in the driver's namespace, with its name in lower case, a claim template, and Ready" {
	local rack domain template
	for rack in "$east" "$west"; do
		eventually 30 rack_ready "$driver_ns" "$rack"
		domain=$(k -n "$driver_ns" get cd "$rack" -o json)
		jq -e --arg rack "$rack" '.spec == {channel: {allocationMode: "Single", resourceClaimTemplate: {name: "imex-channel-\($rack)"}}, numNodes: 0} and
			.metadata.finalizers == ["resource.nvidia.com/computeDomain"]' <<<"$domain"
		template=$(k -n "$driver_ns" get "resourceclaimtemplates.$(resource_version).resource.k8s.io" "imex-channel-$rack" -o json)
		jq -e --argjson domain "$domain" '.metadata.labels == {"resource.nvidia.com/computeDomain": $domain.metadata.uid,
				"resource.nvidia.com/computeDomainTarget": "Workload"} and .metadata.finalizers == ["resource.nvidia.com/computeDomain"] and
			(.spec.spec.devices.requests | length == 1) and (.spec.spec.devices.requests[0] | .name == "channel" and
				(.exactly // .) .deviceClassName == "compute-domain-default-channel.nvidia.com" and
				(.exactly // .) .allocationMode == "ExactCount" and (.exactly // .) .count == 1) and
			.spec.spec.devices.config == [{requests: ["channel"], opaque: {driver: "compute-domain.nvidia.com", parameters:
				{allocationMode: "Single", apiVersion: "resource.nvidia.com/v1beta1", domainID: $domain.metadata.uid, kind: "ComputeDomainChannelConfig"}}}]' \
			<<<"$template"
	done
	eventually 10 rack_note_is "$driver_ns" "$east" nodes node-0,node-1
	eventually 10 rack_note_is "$driver_ns" "$west" nodes node-2,node-3
	[[ $(k -n "$driver_ns" get cd -l resource.nvidia.com/rack -o name | wc -l) == 2 ]]
	eventually 10 event_contains ComputeDomain/$east 'created for the rack' "$driver_ns"
}

# failure: the label of a namespace is removed -> its rack ComputeDomains are removed when their pods have
#   ended
@test "a namespace with the label has them too, until the label is removed; one in use stays until its pods have ended" {
	enable_racks
	eventually 30 rack_ready "$ns" "$east"
	eventually 30 rack_ready "$ns" "$west"
	rack_worker a "$east"
	running a
	k label namespace "$ns" resource.nvidia.com/rack-domains- >/dev/null
	eventually 30 rack_gone "$ns" "$west"
	has_channel a
	[[ $(k -n "$ns" get cd "$east" -o jsonpath='{.metadata.deletionTimestamp}') == '' ]]
	k -n "$ns" delete pod a >/dev/null
	eventually 60 rack_gone "$ns" "$east"
	rack_ready "$driver_ns" "$east"
}

# failure: a pod uses the claim template of a rack -> it runs on that rack only
@test "pods run on their rack only, without affinity, even if another has room" {
	enable_racks
	eventually 30 rack_ready "$ns" "$east"
	eventually 30 rack_ready "$ns" "$west"
	local pod
	for pod in a b c; do rack_worker "$pod" "$west"; done
	eventually 60 two_run
	[[ $(placed) == 'node-2 node-3' ]]
	rack_worker d "$east"
	running d
	[[ $(node_of d) == node-[01] ]]
	[[ $(placed) == "$(printf '%s\n' node-2 node-3 "$(node_of d)" | sort | xargs)" ]]
	k -n "$ns" delete pods --all --grace-period=0 >/dev/null
}
two_run() { [[ $(k -n "$ns" get pods -o json | jq '[.items[] | select(.status.phase == "Running")] | length') == 2 ]]; }
placed() { k -n "$ns" get pods -o json | jq -r '.items[].spec.nodeName | select(.)' | sort | xargs; }

@test "the MPIJob on a rack: its workers have a channel each, all of one ComputeDomain" {
	enable_racks
	eventually 30 rack_ready "$ns" "$east"
	# The file as it is, except for image and sizes.
	sed 's|image: .*|image: compute-domains/busybox:test|; s|replicas: 18|replicas: 2|; s|cpu: 110|cpu: 10m|; s|cpu: 2,|cpu: 10m,|; s|960Gi|32Mi|' \
		"$checkout/examples/rack-mpijob.yaml" | k -n "$ns" apply -f - >/dev/null
	mpi_operator dra-example-gb200-4x
	running dra-example-gb200-4x-launcher-0
	has_channel dra-example-gb200-4x-worker-0
	has_channel dra-example-gb200-4x-worker-1
	[[ $(for i in 0 1; do node_of "dra-example-gb200-4x-worker-$i"; echo; done | sort | xargs) == 'node-0 node-1' ]]
	[[ $(node_of dra-example-gb200-4x-launcher-0) == node-[01] ]]
	eventually 30 condition_is "$east" PeersConnected True
	k -n "$ns" delete pods --all --grace-period=0 >/dev/null
}

# failure: a rack's ComputeDomain is deleted by hand -> it is created again
# failure: another object has the name of a rack -> it stays, and an Event reports it
@test "a ComputeDomain of a rack that is deleted by hand is created again; another object with that name stays, and an Event reports it" {
	local uid
	uid=$(rack_uid "$driver_ns" "$west")
	k -n "$driver_ns" delete cd "$west" --timeout=60s >/dev/null
	eventually 30 rack_ready "$driver_ns" "$west"
	[[ $(rack_uid "$driver_ns" "$west") != "$uid" ]]
	domain "$west"
	enable_racks
	eventually 30 rack_ready "$ns" "$east"
	eventually 30 event_contains "ComputeDomain/$west" 'a rack has this name'
	[[ $(domain_field "$west" .spec.channel.resourceClaimTemplate.name) == "$west" ]]
	k -n "$ns" delete cd "$west" --timeout=60s >/dev/null
	eventually 60 rack_ready "$ns" "$west"
}

# failure: a rack gets another partition -> its ComputeDomain stays
@test "a rack that gets another partition keeps its ComputeDomain" {
	local uid
	uid=$(rack_uid "$driver_ns" "$west")
	"$cluster/clique" 2 5
	"$cluster/clique" 3 5
	eventually 60 clique_label_is 2 5
	eventually 60 clique_label_is 3 5
	enable_racks
	eventually 30 rack_ready "$ns" "$west"
	rack_worker a "$west"
	running a
	[[ $(node_of a) == node-[23] && $(rack_uid "$driver_ns" "$west") == "$uid" ]]
	k -n "$ns" delete pod a >/dev/null
	"$cluster/clique" 2 2
	"$cluster/clique" 3 2
	k -n "$driver_ns" delete pod "$(plugin_pod 2)" "$(plugin_pod 3)" >/dev/null # the plugins look when they start
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s >/dev/null
	eventually 60 clique_label_is 2 2
	eventually 60 clique_label_is 3 2
	[[ $(k -n "$driver_ns" get cd -l resource.nvidia.com/rack -o name | wc -l) == 2 ]]
}

# failure: all Nodes of a rack are deleted -> its ComputeDomain is removed a day later, and returns with them
# failure: all nodes of a rack lose power -> its ComputeDomain stays
@test "a rack without power stays; a rack without Nodes shows since when, is removed a day later, and returns with them" {
	local uid
	uid=$(rack_uid "$driver_ns" "$west")
	# No controller may run on these nodes.
	k cordon node-2 >/dev/null
	k cordon node-3 >/dev/null
	k -n "$driver_ns" delete pods -l app=compute-domain-controller --wait >/dev/null
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	"$cluster/power" 2 off
	"$cluster/power" 3 off
	k delete resourceslices --field-selector spec.nodeName=node-2 >/dev/null
	k delete resourceslices --field-selector spec.nodeName=node-3 >/dev/null
	# If the controller reacted to that, it would do so before it creates this ComputeDomain again.
	k -n "$driver_ns" delete cd "$east" --timeout=60s >/dev/null
	eventually 60 rack_ready "$driver_ns" "$east"
	rack_note_is "$driver_ns" "$west" nodes node-2,node-3
	rack_note_is "$driver_ns" "$west" empty-since ''
	"$cluster/up" 2
	eventually 30 rack_note_is "$driver_ns" "$west" nodes ''
	[[ $(rack_note "$driver_ns" "$west" empty-since) == 20*Z && $(rack_uid "$driver_ns" "$west") == "$uid" ]]
	eventually 10 event_contains "ComputeDomain/$west" 'no Node of this rack is left' "$driver_ns"
	k -n "$driver_ns" annotate --overwrite cd "$west" "resource.nvidia.com/rack-empty-since=$(date -u -d '25 hours ago' +%FT%TZ)" >/dev/null
	eventually 30 rack_gone "$driver_ns" "$west"
	"$cluster/up" 4
	"$cluster/clique" 2 2
	"$cluster/clique" 3 2
	label_nodes
	racks_on
	eventually 60 rack_ready "$driver_ns" "$west"
}

# failure: a node lacks the label of its rack -> an Event reports it, and its partition names the rack
@test "a node without the label is in the rack of its partition, and an Event reports it" {
	k label node node-1 "$label-" >/dev/null
	eventually 30 event_contains Node/node-1 "has no label $label" default
	local rack
	states_its_partition() {
		rack=$(k get resourceslices -o json | jq -r '.items[] | select(.spec.nodeName == "node-1") | .spec.devices[0] | (.attributes // .basic.attributes).rack.string')
		[[ $rack =~ ^[0-9a-f]{8}-[0-9a-f-]{27}\.1$ ]]
	}
	eventually 30 states_its_partition
	eventually 30 rack_ready "$driver_ns" "rack-${rack:0:8}-1"
	label_nodes
	eventually 30 node_states 1 "$east"
	eventually 30 rack_note_is "$driver_ns" "rack-${rack:0:8}-1" nodes ''
	k -n "$driver_ns" delete cd "rack-${rack:0:8}-1" --timeout=60s >/dev/null
	rack_gone "$driver_ns" "rack-${rack:0:8}-1"
}
