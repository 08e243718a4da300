#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The status of a pod shows the health of its channel (containerStatuses[].allocatedResourcesStatus).

load driver
load domains

nodes=4
setup_file() { with_driver "$nodes"; }
setup() {
	since 36 "the kubelet asks for the health of DRA devices since Kubernetes 1.36"
	ns_begin
}
teardown() {
	[[ -z ${recorder:-} ]] || pkill -P "$recorder" || true
	knob 1 REFUSE_START=
	knob 0 RECONNECT_MS=
	ns_end
}

# health POD: prints "<health> <message>" of the channel. health_is POD HEALTH TEXT: the message contains this text.
health() { k -n "$ns" get pod "$1" -o json | jq -r '.status.containerStatuses[]?.allocatedResourcesStatus[]? | select(.name == "claim:channel").resources[] | "\(.health) \(.message // "")"'; }
health_is() { [[ $(health "$1") == "$2 "*"${3:-}"* ]]; }
# healthy POD...: all are Healthy.
healthy() {
	local pod
	for pod; do health_is "$pod" Healthy || return 1; done
}
# record POD: records the changes of its health. stays_healthy: stops this, and checks that it was always Healthy.
record() {
	k -n "$ns" get pod "$1" -w -o jsonpath='{.status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].health}{"\n"}' \
		>"$BATS_TEST_TMPDIR/health" 2>/dev/null 3>&- &
	recorder=$!
}
stays_healthy() {
	pkill -P "$recorder"
	wait "$recorder" || true
	[[ -s $BATS_TEST_TMPDIR/health ]] && ! grep -v '^Healthy$' "$BATS_TEST_TMPDIR/health"
}

# failure: IMEX of a node is killed -> its pods and those of its peers show this within 5 s
# bats test_tags=long
@test "the status of a pod shows within seconds that its IMEX has lost a peer, and recovers" {
	knob 0 RECONNECT_MS=2000 # otherwise it tries again after 15, 31 and 62 s
	formed d 0 1
	eventually 20 connected_to 0 1
	eventually 20 connected_to 1 0
	eventually 20 healthy d-0 d-1
	knob 1 REFUSE_START="out of order"
	kill_in_pod "$driver_ns" "$(daemon_pod 1)" nvidia-imex
	eventually 10 health_is d-0 Unhealthy "node-0: IMEX is not connected to node-1, so"
	eventually 10 health_is d-1 Unhealthy "node-1: IMEX daemon is "
	knob 1 REFUSE_START=
	eventually 60 healthy d-0 d-1
}

# failure: a node leaves a ComputeDomain in good order -> its peers stay healthy
@test "a pod that ends does not change the health of the others" {
	formed d 0 1 2
	eventually 20 healthy d-0 d-1 d-2
	record d-0
	k -n "$ns" delete pod d-1 >/dev/null
	eventually 30 assigned_are d "node-0 0,node-2 2,"
	worker d-1 d 1
	running d-1
	eventually 20 healthy d-1
	stays_healthy
}

# bats test_tags=long
# failure: IMEX of a node without pods of the ComputeDomain is killed -> the health does not change
@test "in a standing domain only a node with pods of the ComputeDomain counts" {
	load channels
	load standing
	nothing_left() { eventually 30 labels_gone && eventually 30 nothing_held; }
	with_standing
	eventually 60 all_joined "$nodes"
	eventually 60 daemons_connected "$nodes"
	domain d
	worker d-0 d 0
	running d-0
	eventually 20 healthy d-0
	record d-0
	knob 1 REFUSE_START="out of order"
	kill_in_pod "$driver_ns" "$(daemon_pod 1)" nvidia-imex
	eventually 20 daemon_state_is 1 BACKOFF
	for_seconds 5 healthy d-0
	stays_healthy
	knob 1 REFUSE_START=
	eventually 60 daemons_connected "$nodes"
	worker d-1 d 1
	running d-1 90
	eventually 20 healthy d-0 d-1
	knob 1 REFUSE_START="out of order"
	kill_in_pod "$driver_ns" "$(daemon_pod 1)" nvidia-imex
	eventually 10 health_is d-0 Unhealthy "node-0: IMEX is not connected to node-1, so"
	# The kubelet drops a report after 30 s.
	for_seconds 35 health_is d-0 Unhealthy "node-1"
	knob 1 REFUSE_START=
	eventually 60 healthy d-0 d-1
}
