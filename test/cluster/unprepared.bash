# SPDX-License-Identifier: Apache-2.0
# Helpers for tests of a Prepare call that is interrupted or fails. The tests that run for each change then call the
# plugin in the kubelet's place, or use another pod; long/next_look.bats waits for the kubelet. A .bats file loads
# this after driver.bash.

# daemon_serves K DOMAIN: the daemon of a node serves the ComputeDomain, whether its IMEX is READY or not.
daemon_serves() { [[ $(assignment "$1") == */"$(domain_uid "$2")"/* ]]; }

# repair_unprepared: repairs what a test that failed halfway may have left broken.
repair_unprepared() {
	"$cluster/apiserver" start
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	knob 0 START_DELAY_MS=
	"$cluster/node" 2 umount -l "$plugin_dir" 2>/dev/null || true
}

# plugin_killed_in_prepare: kills the plugin on node-0 while it waits for the IMEX of pod a, which becomes ready soon
# afterwards.
plugin_killed_in_prepare() {
	local pod before
	domain d
	knob 0 START_DELAY_MS=600000
	worker a d 0
	eventually 20 allocated a
	eventually 30 checkpoint_has 0 "$(claim_uid a)" PrepareStarted
	eventually 30 daemon_serves 0 d
	pod=$(plugin_pod 0)
	before=$(restarts "$pod")
	kill_in_pod "$driver_ns" "$pod" compute-domain-kubelet-plugin
	eventually 60 restarted "$pod" "$before"
	checkpoint_has 0 "$(claim_uid a)" PrepareStarted
	# nvidia-imex reads this setting when it starts.
	knob 0 START_DELAY_MS=
	kill_in_pod "$driver_ns" "$(daemon_pod 0)" nvidia-imex
}

# server_stops_in_prepare: stops the API server while pod a has to be unprepared, pod b has its claim ($claim) but no
# assignment yet, and pod c runs. No controller runs until server_is_back, so that b cannot get an assignment before
# the server stops. $stopped is the time. server_is_back SECONDS: starts the API server and the controllers, and
# everything recovers; b may take this long.
server_stops_in_prepare() {
	local uid
	domain d
	worker a d 0
	worker c d 1
	running a
	running c
	uid=$(claim_uid a)
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	worker b d 2
	eventually 20 allocated b
	eventually 30 checkpoint_has 2 "$(claim_uid b)" PrepareStarted
	claim=$(claim_of b)
	k -n "$ns" delete pod a --wait=false
	"$cluster/apiserver" stop
	stopped=$SECONDS
	eventually 60 no_claim_file 0 "$uid"
}
server_is_back() {
	"$cluster/apiserver" start
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2
	gone pod/a
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=90s
	running b "$1"
	has_channel b
	eventually 60 condition_is d PeersConnected True
	[[ $(k -n "$ns" get pod c -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

# disk_full_in_prepare: the disk of node-2 is full, pod a reports it, and then there is space again. disk_as_before
# POD: deletes the pod, then unmounts what was mounted for this test.
disk_full_in_prepare() {
	"$cluster/node" 2 mount -t tmpfs -o size=256k tmpfs "$plugin_dir"
	plugin_and_daemon_again 2
	"$cluster/node" 2 sh -c "dd if=/dev/zero of=$plugin_dir/full bs=4k 2>/dev/null; true"
	domain d
	worker a d 2
	eventually 60 event_contains Pod/a "No space left on device"
	"$cluster/node" 2 rm "$plugin_dir/full"
}
disk_as_before() {
	k -n "$ns" delete pod "$1"
	eventually 60 daemons_current
	eventually 60 daemon_state_is 2 IDLE
	"$cluster/node" 2 umount -l "$plugin_dir"
	plugin_and_daemon_again 2
}
# plugin_and_daemon_again K: replaces both Pods, so that they use the folder that is mounted now.
plugin_and_daemon_again() {
	local daemon
	k -n "$driver_ns" delete pod "$(plugin_pod "$1")"
	plugins_settle
	daemon=$(daemon_pod "$1")
	k -n "$driver_ns" delete pod "$daemon" --timeout=60s
	eventually 60 daemons_current
}
