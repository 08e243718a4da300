#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SIGKILL between any two steps of Prepare and Unprepare, or of a start with a damaged checkpoint: no channel is lost,
# a repeated call succeeds, and nothing is left.
#
# The test itself starts the plugin of node-0 there, with folders that the kubelet does not know, for claims that the
# scheduler has allocated. A small program calls it in the place of the kubelet, which would retry only after a
# minute. See test/kubelet/kill_points. With EVERY_POINT (make long sets it) it is killed at each step, otherwise at
# each third.

load ../cluster/driver
load ../cluster/kill_points

setup() {
	"$cluster/up" 4
	[[ -x $checkout/build/test/kubelet/dra-call ]]
	by_hand=''
}
teardown() {
	[[ -z $by_hand ]] || stop_by_hand
	k -n "$ns" delete resourceclaim other --ignore-not-found >/dev/null
	"$cluster/node" 0 rm -rf $dir
	# Without its plugin a node has no partition after 30 s, and then the report of its daemon releases no index.
	[[ -z ${DAEMON:-} ]] || with_driver 4
	ns_end # last, because the result of a teardown is that of its last command
}

@test "host-managed: the plugin is killed at every step of Prepare and Unprepare" {
	with_driver 4 --set featureGates.HostManagedIMEX=true
	start_by_hand --feature-gates=HostManagedIMEX=true
	driver_elsewhere --set featureGates.HostManagedIMEX=true
	ns_begin
	domain d
	worker a d 0
	eventually 60 allocated "$ns" channel-0
	CHANNEL=$(claim_of "$ns" channel-0) DAEMON='' DOMAIN=''
	stop_by_hand
	by_hand=''
	points 8 fsync --feature-gates=HostManagedIMEX=true
	points 4 rename --feature-gates=HostManagedIMEX=true
	points 2 unlink,remove --feature-gates=HostManagedIMEX=true
	points 2 mkdir --feature-gates=HostManagedIMEX=true
	points 1 connect --feature-gates=HostManagedIMEX=true
	# Files, logs and answers: everything that others can see of a step.
	points 20 write,writev --feature-gates=HostManagedIMEX=true
	OTHER=$(another_claim)
	points 8 fsync --feature-gates=HostManagedIMEX=true
}

# A channel and the node's daemon, on node-0. The daemon continues, with the claim that the plugin of the cluster has
# prepared, and gets the assignment. The plugin of the test prepares the same claim once more, in its own folders.
driver_managed_claims() {
	with_driver 4
	start_by_hand
	driver_elsewhere
	ns_begin
	domain d
	worker a d 0
	eventually 60 allocated "$ns" channel-0
	eventually 60 allocated "$driver_ns" daemon-0
	CHANNEL=$(claim_of "$ns" channel-0) DAEMON=$(claim_of "$driver_ns" daemon-0) DOMAIN=$(domain_uid d)
	eventually 60 daemon_is_ready 0
	ASSIGNMENT=$(assignment 0)
	[[ $ASSIGNMENT == */"$DOMAIN"/* ]]
	stop_by_hand
	by_hand=''
}

# failure: the plugin is killed at any step of Prepare or Unprepare -> the next one completes it
@test "driver-managed: the plugin is killed at every step of Prepare and Unprepare" {
	driver_managed_claims
	points 16 fsync
	points 8 rename
	points 4 unlink,remove
	points 3 mkdir
	points 1 connect
	points 30 write,writev
	OTHER=$(another_claim)
	points 16 fsync
}

# failure: the plugin is killed at any step of a rebuild -> no claim is lost
@test "the plugin is killed at every step of a start with a corrupt checkpoint" {
	driver_managed_claims
	DAMAGE='truncate -s 40'
	points 4 fsync
	points 2 rename
	points 1 link
	points 2 unlink,remove
	points 10 write,writev
	DAMAGE=rm
	points 4 fsync
	points 2 rename
	points 10 write,writev
}
