#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Failures with assigned channels, at the pace of a real cluster. A channel is released a minute after its owner stops
# using it, so each of these tests takes minutes. All nodes are in one partition.

load ../cluster/driver
load ../cluster/channels

setup_file() { channels_begin; }
teardown_file() {
	channels_end
	with_driver 4
}
setup() { ns_begin; }
teardown() {
	"$cluster/link" 3 up
	[[ $(controllers) != 0 ]] || controllers_are 2
	ns_end
}

controllers() { k -n "$driver_ns" get deployment compute-domains-controller -o jsonpath='{.spec.replicas}'; }
controllers_are() {
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas="$1" >/dev/null
	eventually 60 controllers_run "$1"
}
controllers_run() { [[ $(k -n "$driver_ns" get pods -l app=compute-domain-controller -o json | jq '[.items[] | select(.status.phase == "Running")] | length') == "$1" ]]; }
table_is_own() { fabric_now | jq -e '.tableOf == .metadata.uid' >/dev/null; }

# failure: an old copy of the fabric object is restored under pods -> it is ignored, and pods keep their
#   channels [etcd]
@test "an old copy of the fabric object is restored under running pods: it is ignored, running pods keep their channel, and a new ComputeDomain gets another one" {
	domain one
	worker a one 0
	running a
	local old one two three copy
	old=$(fabric_now)
	domain two
	worker b two 1
	running b
	one=$(channels_of a)
	two=$(channels_of b)
	eventually 20 holds_are 1 "$two $(domain_uid two)"
	controllers_are 0
	k delete computedomainfabrics --all >/dev/null
	# The copy does not contain the second ComputeDomain, and the first one's channel belongs to an owner that no
	# longer exists.
	copy=$(jq '{apiVersion, kind, metadata: {name: .metadata.name}, rack, members, nodes, channelCount, next: 1, tableOf, domainCount, channelsInUse, channels} |
		.channels |= map(.owner.uid = "00000000-0000-4000-8000-000000000000" | del(.releasing))' <<<"$old")
	# A restore of etcd bypasses the policy in the same way.
	as_controller create -f - >/dev/null <<<"$copy"
	# In the meantime the copy gives no channel to any pod.
	worker a2 one 2
	eventually 60 event_contains Pod/a2 'no channel has been assigned to ComputeDomain'
	[[ $(channels_of a) == "$one" && $(channels_of b) == "$two" ]]
	controllers_are 2
	eventually 60 table_is_own
	eventually 60 entry_is "$(domain_uid one)" "$one -"
	eventually 60 entry_is "$(domain_uid two)" "$two -"
	running a2 150
	domain three
	worker c three 2
	running c 120
	[[ $(channels_of a2) == "$one" && $(channels_of a) == "$one" && $(channels_of b) == "$two" ]]
	three=$(channels_of c)
	[[ $three != "$one" && $three != "$two" ]]
}

@test "a node on which IMEX starts and stops offers no channels until IMEX is stable, and a short restart withholds nothing" {
	"$cluster/host-imex" 2 stop
	eventually 30 places 2 0
	"$cluster/host-imex" 2 start
	for_seconds 10 places 2 0
	"$cluster/host-imex" 2 stop
	# A restart between two queries is not noticed.
	eventually 20 plugin_shows 2 'host_imex_state{state="DOWN"} 1'
	"$cluster/host-imex" 2 start
	for_seconds 20 places 2 0
	eventually 40 places 2 16
	"$cluster/host-imex" 2 restart
	for_seconds 12 places 2 16
}

@test "a deleted ComputeDomain releases its channel a minute later" {
	domain gone
	worker a gone 0
	running a
	local uid id
	uid=$(domain_uid gone) id=$(channels_of a)
	eventually 20 holds_are 0 "$id $uid"
	k -n "$ns" delete pod a >/dev/null
	k -n "$ns" delete computedomain gone >/dev/null
	is_releasing() { [[ $(entry "$uid") == "$id 2"* ]]; }
	eventually 20 is_releasing
	for_seconds 45 is_releasing
	eventually 100 entry_is "$uid" ''
}

# failure: a channel is released while its node is cut off -> it stays taken until the node is back [cut-off]
@test "a channel is released while its node is cut off: it stays taken, the fabric object names the node, and the channel is free when the node is back" {
	domain gone
	worker a gone 3
	running a
	local uid id another
	uid=$(domain_uid gone) id=$(channels_of a)
	eventually 20 holds_are 3 "$id $uid"
	"$cluster/link" 3 down
	k -n "$ns" delete pod a --force --grace-period=0 >/dev/null 2>&1
	k -n "$ns" delete computedomain gone >/dev/null
	is_releasing() { [[ $(entry "$uid") == "$id 2"* ]]; }
	eventually 60 is_releasing
	for_seconds 100 is_releasing
	fabric_condition_has ChannelsHeld "channel $id of ComputeDomain $ns/gone: node node-3 holds it"
	# No other ComputeDomain gets it in the meantime.
	domain other
	worker b other 0
	running b
	another=$(channels_of b)
	[[ $another != "$id" ]]
	"$cluster/link" 3 up
	eventually 200 entry_is "$uid" ''
}

# failure: a node is cut off with an unreported channel -> no other ComputeDomain gets the channel [cut-off]
@test "a node is cut off with a channel that it has not reported: no other ComputeDomain gets it until the node is back and reports that it has none" {
	# The node's plugin cannot report anything, as if the node was cut off in the second between a Prepare and the
	# report.
	mute node-3
	domain gone
	worker a gone 3
	running a
	local uid id
	uid=$(domain_uid gone) id=$(channels_of a)
	"$cluster/link" 3 down
	unmute
	k -n "$ns" delete pod a --force --grace-period=0 >/dev/null 2>&1
	k -n "$ns" delete computedomain gone >/dev/null
	is_releasing() { [[ $(entry "$uid") == "$id 2"* ]]; }
	eventually 60 is_releasing
	for_seconds 100 is_releasing
	fabric_condition_has ChannelsHeld 'node node-3'
	"$cluster/link" 3 up
	eventually 240 entry_is "$uid" ''
}
# mute NODE: no plugin of that node may write its report. unmute: all plugins may.
mute() {
	k apply -f - >/dev/null <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: mute}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]}
  matchConditions: [{name: plugin, expression: "request.userInfo.username.startsWith('system:serviceaccount:$driver_ns:')"}]
  validations: [{expression: "object.spec.?nodeName.orValue('') != '$1'", message: muted}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: mute}
spec: {policyName: mute, validationActions: [Deny]}
END
	eventually 30 is_mute "${1#node-}"
}
is_mute() {
	[[ $(k --as="system:serviceaccount:$driver_ns:test" --as-group=system:masters -n "$driver_ns" annotate --overwrite --dry-run=server pod "$(plugin_pod "$1")" x=y 2>&1) == *muted* ]]
}
unmute() { k delete validatingadmissionpolicybinding,validatingadmissionpolicy mute >/dev/null; }

# failure: two controllers lead at once -> no channel is given to two ComputeDomains
@test "two controllers lead at once: each ComputeDomain gets one channel, and none gets that of another" {
	# The second one starts without leader election.
	local env
	controller_kubeconfig "$BATS_TEST_TMPDIR/kubeconfig"
	mapfile -t env < <(k -n "$driver_ns" get deployment compute-domains-controller -o json |
		jq -r '.spec.template.spec.containers[0].env[] | select(.value != null) | "\(.name)=\(.value)"')
	env "${env[@]}" POD_NAME=second NAMESPACE="$driver_ns" "$checkout/build/src/controller/compute-domain-controller" \
		--kubeconfig="$BATS_TEST_TMPDIR/kubeconfig" --leader-election-enabled=false --http-endpoint= -v 2 >"$BATS_TEST_TMPDIR/second.log" 2>&1 3>&- &
	local second=$! i
	for i in 1 2 3 4 5 6 7 8; do
		domain "d$i"
		worker "w$i" "d$i" $((i % 4))
	done
	for i in 1 2 3 4 5 6 7 8; do running "w$i" 150; done
	kill "$second"
	wait "$second"
	grep -q 'all caches are filled, reconciling everything' "$BATS_TEST_TMPDIR/second.log"
	local ids
	ids=$(for i in 1 2 3 4 5 6 7 8; do channels_of "w$i"; done | sort -n)
	[[ $(wc -l <<<"$ids") == 8 && $(uniq <<<"$ids" | grep -c '^[0-9]*$') == 8 ]]
	fabric_now | jq -e '[.channels[].id] | length == (unique | length)' >/dev/null
}

# failure: IMEX of a node has another version than most -> the node withholds its channels
@test "a node with another version of IMEX than most withholds its channels until the version is the same, and the fabric object names it" {
	k -n default delete events --all >/dev/null
	eventually 30 fabric_version_is 580.95.05
	knob 3 VERSION=575.57.08
	"$cluster/host-imex" 3 restart
	eventually 90 places 3 0
	eventually 20 node_event 3 'nvidia-imex has version 575.57.08 on this node, but version 580.95.05 on most nodes of its NVLink partition' \
		ComputeDomainDevicesWithheld
	eventually 20 fabric_condition_has NodesDiffer 'nvidia-imex 580.95.05' 'node-3 (575.57.08)'
	fabric_version_is 580.95.05
	places 2 16
	knob 3 VERSION=
	"$cluster/host-imex" 3 restart
	eventually 90 places 3 16
	eventually 20 no_fabric_condition NodesDiffer
}
fabric_version_is() { [[ $(fabric_now | jq -r .imexVersion) == "$1" ]]; }
