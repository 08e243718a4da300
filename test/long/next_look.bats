#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pods that wait for a retry of the kubelet: after a failed Prepare it retries after 60 to 90 s. The tests that run
# for each change call the plugin themselves, or use another pod.

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
	running a 240 # a kubelet retries an interrupted call only after up to 90 s
	has_channel a
}

# failure: the API server is down for a minute -> claims are prepared and unprepared afterwards [api-server]
@test "the API server is down for a minute while claims are prepared and unprepared" {
	server_stops_in_prepare
	# The kubelet's time-out of 45 s ends in the meantime.
	eventually 70 plugin_logged 2 "\"cannot prepare claim\" claim=\"$ns/$claim\""
	a_minute_has_passed() { ((SECONDS > stopped + 60)); }
	eventually 62 a_minute_has_passed
	server_is_back 300 # the Kubernetes components need a minute after the server was down for one
}

# failure: the disk is full while a claim is recorded -> the pod starts without help when there is space
#   [plugin]
@test "the disk is full while a claim is recorded: an Event of the pod reports it, and the pod starts without help when there is space" {
	disk_full_in_prepare
	running a 150
	has_channel a
	disk_as_before a
}
