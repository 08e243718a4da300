#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a pod is worth that nobody deletes: a kubelet whose Prepare has failed asks again only at its next look
# at the pod, after 60 to 90 s. The tests of each change ask in its place, or go on with another pod.

load ../cluster/driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || mend
	ns_end
}

# What a test that failed halfway may have left broken.
mend() {
	"$cluster/apiserver" start
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	knob 0 START_DELAY_MS=
	"$cluster/node" 2 umount -l "$plugin_dir" 2>/dev/null || true
}

daemon_pod_runs() { [[ $(k -n "$driver_ns" get pod "$(daemon_pod "$1" "$2")" -o jsonpath='{.status.phase}') == Running ]]; }
plugins_settle() { k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null; }

@test "the kubelet plugin is killed while a Prepare waits, and the kubelet asks again" {
	local pod before
	domain d
	knob 0 START_DELAY_MS=600000
	worker a d 0
	eventually 20 allocated a
	eventually 30 checkpoint_has 0 "$(claim_uid a)" PrepareStarted
	eventually 30 daemon_pod_runs d 0
	pod=$(plugin_pod 0)
	before=$(restarts "$pod")
	kill_in_pod "$driver_ns" "$pod" compute-domain-kubelet-plugin
	eventually 60 restarted "$pod" "$before"
	checkpoint_has 0 "$(claim_uid a)" PrepareStarted
	# It is read at the start.
	knob 0 START_DELAY_MS=
	kill_in_pod "$driver_ns" "$(daemon_pod d 0)" nvidia-imex
	running a 240 # a kubelet whose call broke off asks again only at its next look at the pod, after up to 90 s
	has_channel a
}

@test "the API server is gone for a minute while claims are prepared and unprepared" {
	domain d
	worker a d 0
	worker c d 1
	running a
	running c
	local uid claim stopped
	uid=$(claim_uid a)
	# Prepared: b has its claim, but neither index nor daemon yet. Unprepared: a.
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s
	worker b d 2
	eventually 20 allocated b
	eventually 30 checkpoint_has 2 "$(claim_uid b)" PrepareStarted
	claim=$(claim_of b)
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2
	k -n "$ns" delete pod a --wait=false
	"$cluster/apiserver" stop
	stopped=$SECONDS
	eventually 60 no_claim_file 0 "$uid"
	# The kubelet's patience of 45 s ends meanwhile.
	eventually 70 plugin_says 2 "\"cannot prepare claim\" claim=\"$ns/$claim\""
	a_minute_has_passed() { ((SECONDS > stopped + 60)); }
	eventually 62 a_minute_has_passed
	"$cluster/apiserver" start
	gone pod/a
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=90s
	running b 300 # Kubernetes' own controllers take a minute to come back to a server that was away for one
	has_channel b
	eventually 60 condition_is d PeersConnected True
	[[ $(k -n "$ns" get pod c -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
}

@test "the disk is full while a claim is journaled: the pod says so, and starts by itself when there is room" {
	"$cluster/node" 2 mount -t tmpfs -o size=256k tmpfs "$plugin_dir"
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	plugins_settle
	"$cluster/node" 2 sh -c "dd if=/dev/zero of=$plugin_dir/full bs=4k 2>/dev/null; true"
	domain d
	worker a d 2
	eventually 60 event_says Pod/a "No space left on device"
	"$cluster/node" 2 rm "$plugin_dir/full"
	running a 150
	has_channel a
	k -n "$ns" delete pod a
	eventually 60 daemon_pods_gone
	"$cluster/node" 2 umount -l "$plugin_dir"
	k -n "$driver_ns" delete pod "$(plugin_pod 2)"
	plugins_settle
}
