#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Attempts to get a channel of another ComputeDomain (imex.isolation=channel), and failures under ComputeDomains with
# a channel: what tenants write, what they do in containers, a ComputeDomain that is deleted under its pods, and
# controllers that are down. More tests: channels.bats, long/channel_limits.bats.

load ../cluster/driver
load ../cluster/channels

setup_file() { channels_begin; }
teardown_file() {
	channels_end
	with_driver 4
}
setup() { ns_begin; }
teardown() {
	[[ $(k -n "$driver_ns" get deployment compute-domains-controller -o jsonpath='{.spec.replicas}') != 0 ]] || controllers 2
	ns_end
}
controllers() {
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas="$1" >/dev/null
	eventually 60 controllers_are "$1"
}
controllers_are() { [[ $(k -n "$driver_ns" get pods -l app=compute-domain-controller -o name | wc -l) == "$1" ]]; }
no_restart() { [[ $(k -n "$ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]; }

# opens POD ID: prints the error that a container gets when it creates the device file of this channel and opens it.
# No driver has the simulated major number, and only a container that may open the device gets that error.
opens() {
	k -n "$ns" exec "$1" -- sh -c 'major=$(printf %d 0x$(stat -c %t /dev/nvidia-caps-imex-channels/channel*)); rm -f /tmp/c; mknod /tmp/c c "$major" "$1" &&
		cat /tmp/c 2>&1; true' sh "$2"
}

# failure: a tenant creates the device file of another channel -> the container cannot open it [tenants]
@test "a container opens its assigned channel and no other, even if it can create device files" {
	domain mine
	domain theirs
	worker m mine 0
	worker t theirs 0
	running m
	running t
	local own other
	own=$(channels_of m)
	other=$(channels_of t)
	[[ $own != "$other" ]]
	[[ $(opens m "$own") == *"No such device or address"* ]]
	[[ $(opens m "$other") == *"Operation not permitted"* ]]
	[[ $(opens m 0) == *"Operation not permitted"* ]]
}

# failure: a tenant's claim selects another's channel by its device -> it gets none [tenants]
@test "a claim that selects a channel by its device gets none, because all channel devices of a node are alike" {
	domain d
	worker a d 0
	running a
	claimed_by_hand picky "$(config "$(domain_uid d)" ComputeDomainChannelConfig ', isolation: Channel')" '' 0 \
		", selectors: [{cel: {expression: \"device.attributes['compute-domain.nvidia.com'].id == $(channels_of a)\"}}]"
	eventually 30 event_contains Pod/picky 'cannot allocate all claims'
}

# failure: a ComputeDomain with a channel is deleted under its pods -> they keep it, and no other gets it
@test "a ComputeDomain is deleted under its pods: they keep their channel, no other ComputeDomain gets it, and no new pod starts" {
	domain gone
	worker a gone 0
	worker b gone 1
	running a
	running b
	local uid id another
	uid=$(domain_uid gone) id=$(channels_of a)
	eventually 20 holds_are 0 "$id $uid"
	k -n "$ns" delete computedomain gone --timeout=30s >/dev/null
	is_releasing() { [[ $(entry "$uid") == "$id 2"* ]]; }
	eventually 20 is_releasing
	# A ComputeDomain with the same name is another one.
	domain gone
	worker c gone 2
	running c
	another=$(channels_of c)
	[[ $another != "$id" ]]
	claimed_by_hand late "$(config "$uid" ComputeDomainChannelConfig ', isolation: Channel')" '' 3
	refused_with late "there is no ComputeDomain $uid"
	[[ $(channels_of a) == "$id" && $(channels_of b) == "$id" ]]
	no_restart a
	no_restart b
	is_releasing
}

# failure: the controllers are down -> ComputeDomains with a channel continue, others wait
@test "the controllers are down: ComputeDomains with a channel continue, on other nodes too; one without a channel waits, whatever its owner writes on its objects" {
	domain known
	domain new
	worker a known 0
	running a
	local id new
	id=$(channels_of a)
	new=$(domain_uid new)
	eventually 20 k -n "$ns" get "resourceclaimtemplates.$(resource_version).resource.k8s.io" new -o name >/dev/null
	controllers 0
	worker a2 known 1
	worker b new 1
	running a2
	[[ $(channels_of a2) == "$id" ]]
	eventually 20 eval '[[ -n $(claim_of b) ]]'
	k -n "$ns" annotate computedomain/new "resourceclaim/$(claim_of b)" pod/b resource.nvidia.com/channel="$id" >/dev/null
	k -n "$ns" label computedomain/new "resourceclaim/$(claim_of b)" resource.nvidia.com/computeDomain="$(domain_uid known)" --overwrite >/dev/null
	for_seconds 3 no_claim_file 1 "$(claim_uid b)"
	controllers 2
	running b 120
	[[ $(channels_of b) != "$id" && $(channels_of b) == "$(entry "$new" | cut -d' ' -f1)" && $(channels_of a) == "$id" ]]
}
