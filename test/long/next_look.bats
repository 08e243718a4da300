#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pods whose Prepare has failed. The kubelet retries it after 60 to 90 s, or at once when the plugin changes an
# annotation of the pod. The tests that run for each change call the plugin themselves, or use another pod.

load ../cluster/driver
load ../cluster/unprepared

setup_file() { with_driver 4; }
setup() { ns_begin; }
# asked POD: prints when the plugin asked the kubelet to retry, in seconds since 1970; nothing if it has not.
asked() {
	local time
	time=$(k -n "$ns" get pod "$1" -o jsonpath='{.metadata.annotations.resource\.nvidia\.com/retry-prepare}')
	[[ -z $time ]] || date -d "$time" +%s
}
# started_within POD SECONDS: the pod's container started so soon after that.
started_within() {
	local started
	started=$(date -d "$(k -n "$ns" get pod "$1" -o jsonpath='{.status.containerStatuses[0].state.running.startedAt}')" +%s)
	echo "asked at $(asked "$1"), started at $started" >&2
	((started - $(asked "$1") <= $2))
}

teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || repair_unprepared
	ns_end
}

# failure: the plugin is killed while a Prepare waits -> the pod starts by the kubelet's retry [plugin]
@test "the kubelet plugin is killed while a Prepare waits, and the kubelet retries" {
	plugin_killed_in_prepare
	running a 40 # a kubelet by itself retries an interrupted call only after 60 to 90 s
	has_channel a
	[[ -n $(asked a) ]]
}

# failure: IMEX becomes READY after a Prepare has failed -> the pod starts within seconds
#   [imex]
@test "IMEX becomes READY after a Prepare has failed, and the pod starts within seconds" {
	domain d
	knob 0 START_DELAY_MS=600000
	worker a d 0
	eventually 20 allocated a
	eventually 90 plugin_logged 0 "\"cannot prepare claim\" claim=\"$ns/$(claim_of a)\""
	[[ -z $(asked a) ]]
	knob 0 START_DELAY_MS=
	kill_in_pod "$driver_ns" "$(daemon_pod 0)" nvidia-imex
	running a 20
	has_channel a
	started_within a 20 # a kubelet by itself retries after 60 to 90 s
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
