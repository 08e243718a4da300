#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A kubelet that has lost its record of claims never unprepares them. Such claims must not block the node's channel.

load ../cluster/driver

setup_file() { with_driver 2; }
setup() { ns_begin; }
teardown() {
	"$cluster/kubelet" 1 start >/dev/null 2>&1 || true
	ns_end
}

# The kubelet has forgotten the claim of the daemon, too, and never unprepares it. So the next daemon waits until the
# plugin does.
teardown_file() {
	k -n "$driver_ns" delete pod "$(daemon_pod 1)" >/dev/null
	eventually 120 daemons_current
	eventually 60 daemon_state_is 1 IDLE
}

# forgotten_pod POD FILE...: force-deletes the pod while its kubelet is down, and deletes these files of the node.
forgotten_pod() {
	local pod=$1
	shift
	"$cluster/kubelet" 1 stop
	k -n "$ns" delete pod "$pod" --force --grace-period=0 >/dev/null 2>&1
	"$cluster/node" 1 rm -f "$@"
	"$cluster/kubelet" 1 start
}

# by_name POD NODE: a pod with the claim "by-name".
by_name() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  nodeSelector: {kubernetes.io/hostname: node-$2}
  resourceClaims: [{name: channel, resourceClaimName: by-name}]
  containers:
  - name: main
    image: compute-domains/busybox:test
    imagePullPolicy: Never
    command: [sleep, "3600"]
    resources: {claims: [{name: channel}]}
END
}

not_reserved() { prints_nothing k -n "$ns" get resourceclaim by-name -o jsonpath='{.status.reservedFor}'; }

# failure: the kubelet forgets a claim that moves to another node -> its channel is free within a minute
@test "a named claim that the kubelet forgot and that is used on another node releases its channel within a minute" {
	domain named
	k -n "$ns" apply -f - >/dev/null <<END
$(one_device ResourceClaim "$(config "$(domain_uid named)")")
metadata: {name: by-name}
END
	by_name one 1
	running one
	forgotten_pod one /var/lib/kubelet/dra_manager_state
	eventually 60 not_reserved
	by_name two 0
	running two 90
	worker three named 1
	running three 60
	has_channel three
	plugin_logged 1 "unpreparing a claim that no longer exists on this node\" claim=\"$ns/by-name\""
	running two 5
	has_channel two
}

# failure: a node is reset without a reboot -> its first pod starts within a minute
@test "a node that was reset without a reboot starts its first pod within a minute" {
	local claim
	domain reset
	worker before reset 1
	running before
	claim=$(claim_uid before)
	forgotten_pod before /var/lib/kubelet/dra_manager_state "$plugin_dir/checkpoint.json"
	claim_file 1 "$claim"
	k -n "$driver_ns" delete pod "$(plugin_pod 1)" >/dev/null
	# A kubelet without the plugin would retry after 60 to 90 s.
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s >/dev/null
	worker after reset 1
	running after 60
	has_channel after
	no_claim_file 1 "$claim"
}
