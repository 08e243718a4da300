#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SIGKILL between any two steps that give a ComputeDomain its own channel, while the hosts run IMEX: steps of Prepare
# and Unprepare in the plugin, and of assigning and releasing a channel in the controller. No channel is given twice,
# none changes, and nothing is left.
#
# As in long/kill_points.bats and long/controller_kill_points.bats, the test itself starts the plugin of node-0 and
# the controller.

load ../cluster/driver
load ../cluster/channels
load ../cluster/kill_points

own=', isolation: Channel'
by_hand_flags=(--feature-gates=HostManagedIMEX=true --imex-isolation=channel)
channel_values=(--set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.hostProbeInterval=1s
	--set resources.computeDomains.imex.isolation=channel)

setup_file() {
	channels_begin # here, so that the plugin of node-0 can unprepare the claim of its earlier daemon
}
teardown_file() {
	channels_end
	with_driver 4
}
setup() {
	[[ -x $checkout/build/test/kubelet/dra-call ]]
	by_hand='' controller=''
	ns_begin
}
teardown() {
	[[ -z $by_hand ]] || stop_by_hand
	end_controller
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || { tail -20 "$BATS_TEST_TMPDIR"/*.log; fabric_now; } | cut -c1-600
	k -n "$ns" delete resourceclaim other --ignore-not-found >/dev/null
	"$cluster/node" 0 rm -rf $dir
	# A controller has to remove the finalizers.
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	ns_end # last, because the result of a teardown is that of its last command
}

# failure: the plugin is killed at any step with an assigned channel -> the next one completes the claim
@test "the plugin is killed at every step of Prepare and Unprepare of a claim with an assigned channel" {
	start_by_hand "${by_hand_flags[@]}"
	driver_elsewhere "${channel_values[@]}"
	domain d
	worker a d 0
	eventually 60 allocated "$ns" channel-0
	CHANNEL=$(claim_of "$ns" channel-0) DAEMON='' DOMAIN=''
	eventually 30 has_entry "$(domain_uid d)"
	ID=$(id_of "$(domain_uid d)")
	stop_by_hand
	by_hand=''
	points 8 fsync "${by_hand_flags[@]}"
	points 4 rename "${by_hand_flags[@]}"
	points 2 unlink,remove "${by_hand_flags[@]}"
	points 2 mkdir "${by_hand_flags[@]}"
	points 1 connect "${by_hand_flags[@]}"
	points 20 write,writev "${by_hand_flags[@]}"
	OTHER=$(another_claim)
	points 8 fsync "${by_hand_flags[@]}"
	[[ $(id_of "$(domain_uid d)") == "$ID" ]]
}

# A ComputeDomain that runs on another node in the meantime, and keeps its channel whatever happens to the controller.
with_neighbour() {
	with_driver 4 "${channel_values[@]}"
	domain neighbour
	worker near neighbour 1
	running near
	theirs=$(channels_of near)
	eventually 20 holds_are 1 "$theirs $(domain_uid neighbour)"
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	eventually 60 no_controller
}
table_is_sound() {
	fabric_now | jq -e --arg uid "$(domain_uid neighbour)" --argjson id "$theirs" '.tableOf == .metadata.uid and ([.channels[].id] | length == (unique | length) and all(. > 0)) and
		any(.channels[]; .id == $id and .owner.uid == $uid and (has("releasing") | not))' >/dev/null
}

assigned_and_marked() {
	local uid
	domain d
	uid=$(domain_uid d)
	channel_given "$uid" given "$own"
	eventually 60 has_entry "$uid"
	table_is_sound
	[[ $(entry "$uid") == *" -" && $(id_of "$uid") != "$theirs" ]]
	k -n "$ns" delete resourceclaim/given computedomain/d --wait=false >/dev/null
	gone computedomain/d
	is_releasing() { [[ $(entry "$uid") == *" 2"* ]]; }
	eventually 60 is_releasing
	table_is_sound
}
# failure: the controller is killed at any request while a channel is assigned -> no other ComputeDomain has
#   it
@test "the controller is killed before its requests while a ComputeDomain gets its channel and is deleted: no other ComputeDomain has that channel, and it is released" {
	with_neighbour
	killed_at_each 8 assigned_and_marked
	[[ $(channels_of near) == "$theirs" ]]
}

# enter_gone UID: adds an entry for a channel of an owner that was deleted long ago. A request that a killed controller
# had sent may come in between.
enter_gone() {
	local table=$BATS_TEST_TMPDIR/table id
	fabric_now >"$table"
	id=$(jq '[.channels[].id] | max + 1' "$table")
	jq -c --arg uid "$1" --arg ns "$ns" --argjson id "$id" '{metadata: {resourceVersion: .metadata.resourceVersion},
		channels: (.channels + [{id: $id, owner: {kind: "ComputeDomain", namespace: $ns, name: "gone", uid: $uid}, releasing: "2026-01-01T00:00:00Z"}])}' "$table" >"$table.patch"
	as_controller patch computedomainfabric "$(jq -r .metadata.name "$table")" --type=merge --patch-file="$table.patch" >/dev/null
}
gone_long_ago() {
	local uid
	uid=00000000-0000-4000-8000-$(printf %012d "$1")
	eventually 10 enter_gone "$uid"
	eventually 150 entry_is "$uid" '' # a killed controller may have waited for most of the minute
	table_is_sound
}
# failure: the controller is killed at any request while a channel is freed -> only that channel is free
@test "the controller is killed before its requests while a channel is released: that channel becomes free, and no other" {
	with_neighbour
	# A controller frees the channel a minute after it has first seen the entry. Most of its requests in this minute
	# renew its Lease, so not each of them is a point.
	EVERY_POINT='' killed_at_each 5 gone_long_ago
	[[ $(channels_of near) == "$theirs" ]]
}
