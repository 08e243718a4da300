#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a pod is worth that nobody deletes: a kubelet whose Prepare has failed asks again only at its next look
# at the pod, after 60 to 90 s. The tests of each change ask in its place, or go on with another pod.

load ../cluster/driver
load ../cluster/unprepared

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || repair_unprepared
	ns_end
}

# failure: the plugin is killed while a Prepare waits -> the pod starts by the kubelet's retry [plugin]
@test "the kubelet plugin is killed while a Prepare waits, and the kubelet retries" {
	plugin_killed_in_prepare
	running a 240 # a kubelet whose call broke off asks again only at its next look at the pod, after up to 90 s
	has_channel a
}

# failure: the API server is down for a minute -> claims are prepared and unprepared afterwards [api-server]
@test "the API server is gone for a minute while claims are prepared and unprepared" {
	server_stops_in_prepare
	# The kubelet's patience of 45 s ends meanwhile.
	eventually 70 plugin_says 2 "\"cannot prepare claim\" claim=\"$ns/$claim\""
	a_minute_has_passed() { ((SECONDS > stopped + 60)); }
	eventually 62 a_minute_has_passed
	server_is_back 300 # Kubernetes' own controllers take a minute to come back to a server that was away for one
}

# failure: the disk is full while a claim is recorded -> the pod starts without help when there is room
#   [plugin]
@test "the disk is full while a claim is recorded: an Event of the pod reports it, and the pod starts by itself when there is room" {
	disk_full_in_prepare
	running a 150
	has_channel a
	disk_as_before a
}
