#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# kill -9 between any two steps of Prepare and Unprepare, or of a start on a damaged checkpoint: no channel is lost, what is asked again
# succeeds, and nothing is left over.
#
# The plugin of node-0 runs by hand there, with folders that the kubelet does not know, on claims that the scheduler has allocated. A small
# program asks in the kubelet's place, which would hold back its next try for a minute. See test/kubelet/kill_points. Each third step, and
# with EVERY_POINT (make long PART=kill_points) each.

load driver

dir=/run/kill-points
plugin_by_hand() { echo "$checkout/build/src/cd_plugin/compute-domain-kubelet-plugin" --node-name=node-0 --namespace="$driver_ns" \
	--nvidia-driver-root=/run/nvidia/driver --driver-root-ctr-path=/run/nvidia/driver --alt-proc-devices-path=/run/nvidia/driver/proc/devices "$@"; }

# start_by_hand ARGS...: so that the node offers its devices, and the scheduler finds them.
start_by_hand() {
	"$cluster/node" 0 mkdir -p $dir/registry
	"$cluster/node" 0 $(plugin_by_hand --kubelet-plugins-directory-path=$dir/plugins --kubelet-registrar-directory-path=$dir/registry \
		--cdi-root=$dir/cdi "$@") >"$BATS_TEST_TMPDIR/plugin.log" 2>&1 3>&- &
	by_hand=$!
}
# Our own child has the plugin in its place: node and nsenter exec it.
stop_by_hand() {
	kill "$by_hand"
	wait "$by_hand" || true
}

# driver_elsewhere HELM ARGS...: the chart, with plugins everywhere but on node-0.
driver_elsewhere() {
	k label --overwrite nodes node-1 node-2 node-3 kill-points=elsewhere >/dev/null
	with_driver 4 --set kubeletPlugin.nodeSelector.kill-points=elsewhere "$@"
	gone_from_node_0() { [[ -z $(plugin_pod 0 2>/dev/null) ]]; }
	eventually 60 gone_from_node_0
}

# claim_of NAMESPACE DEVICE: "NAMESPACE NAME UID" of the claim that has this device of node-0.
claim_of() {
	k -n "$1" get resourceclaims -o json | jq -er --arg device "$2" \
		'[.items[] | select(.status.allocation.devices.results[0] | .pool == "node-0" and .device == $device)][0] // empty | .metadata | "\(.namespace) \(.name) \(.uid)"'
}
allocated() { claim_of "$@" >/dev/null 2>&1; }

# another_claim: as the first one is, but with a UID of its own; the scheduler gives a device to one only.
another_claim() {
	local first
	first=$(k -n "$ns" get resourceclaim "$(cut -d' ' -f2 <<<"$CHANNEL")" -o json)
	jq '{apiVersion, kind, metadata: {name: "other"}, spec}' <<<"$first" | k -n "$ns" create -f - >/dev/null
	jq '{status: {allocation: .status.allocation}}' <<<"$first" | k -n "$ns" patch resourceclaim other --subresource=status --type=merge --patch-file=/dev/stdin >/dev/null
	echo "$ns other $(k -n "$ns" get resourceclaim other -o jsonpath='{.metadata.uid}')"
}

# points AT_LEAST SYSCALLS PLUGIN-ARGS...: fails when there are fewer than so many calls, for then the test watches the wrong ones.
points() {
	local least=$1 syscalls=$2 n
	shift 2
	n=$("$cluster/node" 0 env DIR=$dir/tried DRA_CALL="$checkout/build/test/kubelet/dra-call" \
		KILL_AT_LIB="$checkout/build/test/kubelet/libkill-at.so" CHANNEL="$CHANNEL" DAEMON="$DAEMON" DOMAIN="$DOMAIN" \
		STRIDE="$([[ -n ${EVERY_POINT:-} ]] && echo 1 || echo 3)" OTHER="${OTHER:-}" DAMAGE="${DAMAGE:-}" \
		"$checkout/test/kubelet/kill_points" "$syscalls" $(plugin_by_hand "$@"))
	echo "$syscalls: killed at $n points${OTHER:+, and given up}${DAMAGE:+, started after $DAMAGE}"
	((n >= least))
}

setup() {
	"$cluster/up" 4
	[[ -x $checkout/build/test/kubelet/dra-call ]]
	by_hand=''
}
teardown() {
	[[ -z $by_hand ]] || stop_by_hand
	k -n "$ns" delete resourceclaim other --ignore-not-found >/dev/null
	ns_end
	"$cluster/node" 0 rm -rf $dir
}

@test "host-managed: the plugin is killed at every step of Prepare and Unprepare" {
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
	# Files, logs and answers: all that anybody gets to see of a step.
	points 20 write,writev --feature-gates=HostManagedIMEX=true
	OTHER=$(another_claim)
	points 8 fsync --feature-gates=HostManagedIMEX=true
}

# A channel and its daemon, allocated on node-0.
driver_managed_claims() {
	start_by_hand
	driver_elsewhere
	ns_begin
	domain d
	worker a d 0
	eventually 60 allocated "$ns" channel-0
	eventually 60 allocated "$driver_ns" daemon-0
	CHANNEL=$(claim_of "$ns" channel-0) DAEMON=$(claim_of "$driver_ns" daemon-0) DOMAIN=$(domain_uid d)
	stop_by_hand
	by_hand=''
}

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

@test "the plugin is killed at every step of a start on a corrupt checkpoint" {
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
