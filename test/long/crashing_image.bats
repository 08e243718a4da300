#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The rollout of a new template of the daemons: first one idle daemon, then at most a tenth of the idle ones at a time
# (at least one), and the others after these have run for a minute. So an image with crashing daemons stops at the
# first daemon.

load ../cluster/driver
load ../cluster/domains
nodes=4

setup_file() { with_driver $nodes; }
setup() { ns_begin; }
teardown() {
	with_driver $nodes --reset-values
	ns_end
}

# upgrade ARGS...: does not wait for the daemons.
upgrade() {
	"$cluster/helm" upgrade compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --reuse-values --wait --timeout 120s "$@" >/dev/null
}
# upgrade_to_crashing_image: the controller starts daemons with an image that does not contain their program.
upgrade_to_crashing_image() {
	upgrade --set 'controller.containers.computeDomain.env[0].name=IMAGE_NAME' \
		--set 'controller.containers.computeDomain.env[0].value=compute-domains/busybox:test'
}
roll_back() { "$cluster/helm" rollback compute-domains --namespace "$driver_ns" --wait --timeout 120s >/dev/null; }
# hashes: prints the template hash of each daemon, "<node> <hash>" per line. replaced BEFORE N: N daemons have another
# template than before.
hashes() {
	k -n "$driver_ns" get pods -l $daemon_selector -o json | jq -r '.items[] | select(.metadata.deletionTimestamp | not) |
		"\(.spec.nodeName) \(.metadata.annotations["resource.nvidia.com/template-hash"])"' | sort
}
replaced() { [[ $(comm -13 <(echo "$1") <(hashes) | wc -l) == "$2" ]]; }
# crashing N: N daemons have a container that has started and ended.
crashing() {
	k -n "$driver_ns" get pods -l $daemon_selector -o json | jq -e --argjson n "$1" '[.items[] | select(.metadata.deletionTimestamp | not) |
		select(.status.containerStatuses[0].restartCount > 0 or (.status.containerStatuses[0].state.waiting.reason // "" | test("CrashLoopBackOff|RunContainerError")))] |
		length == $n' >/dev/null
}

# failure: a node joins during an upgrade -> idle daemons are replaced in stages, and one in use waits
@test "a new template runs on one idle daemon for a minute, and then on the other idle ones; a daemon in use waits until its ComputeDomain has ended" {
	formed busy 0
	local before pid
	before=$(hashes) pid=$(imex_pid 0)
	upgrade --set daemon.podLabels.version=next
	eventually 30 replaced "$before" 1
	for_seconds 45 replaced "$before" 1
	eventually 90 replaced "$before" 3
	[[ $(imex_pid 0) == "$pid" ]]
	k -n "$ns" delete pod busy-0 >/dev/null
	eventually 90 replaced "$before" 4
	eventually 60 daemons_idle $nodes
}

# failure: a new image of the daemons crashes -> one idle daemon gets it, and helm rollback repairs it
@test "an image with crashing daemons reaches one idle daemon, an Event reports it, and helm rollback alone repairs it" {
	formed busy 0
	local before pid
	before=$(hashes) pid=$(imex_pid 0)
	upgrade_to_crashing_image
	eventually 60 crashing 1
	eventually 30 eval 'k -n "$driver_ns" get events --field-selector reason=DaemonsCrash -o name | grep -q .'
	# Longer than a daemon has to run until it counts as healthy.
	for_seconds 90 replaced "$before" 1
	crashing 1
	[[ $(imex_pid 0) == "$pid" ]]
	has_channel busy-0
	# The other daemons still work.
	local other
	other=$(comm -12 <(echo "$before") <(hashes) | sed -n 's/^node-\([1-3]\) .*/\1/p' | head -1)
	worker joins busy "$other"
	running joins
	roll_back
	eventually 60 eval '[[ $(hashes) == "$before" ]]'
	eventually 60 crashing 0
	[[ $(imex_pid 0) == "$pid" ]]
	local i
	for i in 1 2 3; do [[ $i == "$other" ]] || worker "after-$i" busy "$i"; done
	for i in 1 2 3; do [[ $i == "$other" ]] || running "after-$i" 90; done
	ready busy
	[[ $(imex_pid 0) == "$pid" ]]
}

# failure: a daemon is deleted during a crashing upgrade -> no other idle daemon is replaced
@test "a daemon that is deleted during such an upgrade returns with the new template, and no other idle one is replaced" {
	local before
	before=$(hashes)
	upgrade_to_crashing_image
	eventually 60 crashing 1
	local first victim
	first=$(comm -13 <(echo "$before") <(hashes) | cut -d' ' -f1)
	for victim in 1 2 3; do [[ node-$victim == "$first" ]] || break; done
	# The DaemonSet controller uses the newest template.
	k -n "$driver_ns" delete pod "$(daemon_pod "$victim")" >/dev/null
	eventually 60 crashing 2
	for_seconds 75 replaced "$before" 2
	roll_back
	eventually 60 eval '[[ $(hashes) == "$before" ]]'
	eventually 60 daemons_idle $nodes
}

# failure: two upgrades in a row crash -> one daemon gets them, and a good upgrade repairs it
@test "two upgrades in a row, both to crashing images: the second one reaches only the daemon that already crashes, and an upgrade to a good image repairs it" {
	local before bad
	before=$(hashes)
	upgrade_to_crashing_image
	eventually 60 crashing 1
	bad=$(comm -13 <(echo "$before") <(hashes))
	upgrade --set daemon.podLabels.version=next
	# A crashing daemon is idle, and is replaced at once.
	second_try() { replaced "$before" 1 && [[ $(comm -13 <(echo "$before") <(hashes)) != "$bad" ]]; }
	eventually 60 second_try
	for_seconds 75 replaced "$before" 1
	with_driver $nodes --reset-values
	eventually 120 daemons_idle $nodes
	formed after 0 1 2 3
}
