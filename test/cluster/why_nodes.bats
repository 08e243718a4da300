#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `kubectl compute-domains why` about pods whose node is the cause, with the real kubelet and driver: with admin rights,
# and with the role `view` in one namespace.

load driver
load domains
load why

setup_file() { with_driver 4; }
setup() { ns_begin; viewer; }
teardown() {
	local pid
	k label namespace "$driver_ns" pod-security.kubernetes.io/enforce- >/dev/null
	k -n "$driver_ns" delete --ignore-not-found resourcequota/critical networkpolicy/default-deny >/dev/null
	# After errors, Kubernetes would create the Pods only after a while.
	k -n "$driver_ns" annotate --overwrite daemonset compute-domains-kubelet-plugin compute-domain-daemon "example.com/test=$RANDOM" >/dev/null
	"$cluster/host-imex" all stop
	knob 1 STATUS=
	for pid in $(pids_of_pod "$ns" old sleep 2>/dev/null); do kill -KILL "$pid"; done
	k -n "$ns" delete pods --all --force --grace-period=0 >/dev/null 2>&1
	plugins_settle
	ns_end && eventually 120 daemons_idle 4
}

# pods_wait: three pods that wait because of their nodes: the host's nvidia-imex runs on node-0, IMEX of node-1 waits for
# peers, and the pod "old" still has the channel of node-2.
pods_wait() {
	domain host
	domain waits
	domain held
	"$cluster/host-imex" 0 start
	knob 1 STATUS=WAITING_FOR_PEERS
	k -n "$driver_ns" apply -f - >/dev/null <<-END
		apiVersion: networking.k8s.io/v1
		kind: NetworkPolicy
		metadata: {name: default-deny}
		spec: {podSelector: {}, policyTypes: [Ingress]}
	END
	# A pod that does not end in its grace period. A restored etcd has the allocation of its channel twice.
	k -n "$ns" apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: old}
		spec:
		  terminationGracePeriodSeconds: 600
		  nodeSelector: {kubernetes.io/hostname: node-2}
		  resourceClaims: [{name: channel, resourceClaimTemplateName: held}]
		  containers:
		  - {name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"], lifecycle: {preStop: {exec: {command: [sleep, "600"]}}}, resources: {claims: [{name: channel}]}}
	END
	running old 90
	worker next held 2
	unscheduled next
	k -n "$ns" patch resourceclaim "$(claim_of next)" --subresource=status --type=merge \
		-p "$(k -n "$ns" get resourceclaim "$(claim_of old)" -o json | jq '{status: {allocation: .status.allocation}}')" >/dev/null
	k -n "$ns" delete pod old --wait=false >/dev/null
	worker host host 0
	worker waits waits 1
}

# An admin need not wait for the Event of the kubelet.
@test "two nodes with two causes: the host's nvidia-imex, and an IMEX that waits for peers" {
	pods_wait
	eventually 60 why_is pod/host session-taken
	named session-taken "cluster admin" "IMEX on node-0 is BACKOFF: another nvidia-imex on this node owns the driver's only IMEX session; stop and disable the host's nvidia-imex.service" \
		"Run \`systemctl disable --now nvidia-imex\` on the node."
	eventually 60 why_is pod/waits waiting-for-peers
	named waiting-for-peers "cluster admin" "IMEX on node-1: nvidia-imex is WAITING_FOR_PEERS (it waits for the other nodes of the domain)*" \
		"NetworkPolicy \"default-deny\" in $driver_ns selects the daemons: allow TCP 28000 to 32095 between them"
	why pod/old
	[[ $code == 0 && $(jq -r '.state' <<<"$answer") == "Terminating for "* && $(jq -r '.hints[0]' <<<"$answer") == "Its containers may run for up to "[5-9]m* ]]
}

# bats test_tags=long
@test "four nodes with four causes: an admin gets the holder of a channel and the quota that forbids a daemon, a user of one namespace what the Events of the kubelets show" {
	local pod
	pods_wait
	domain refused
	k -n "$driver_ns" apply -f - >/dev/null <<-END
		apiVersion: v1
		kind: ResourceQuota
		metadata: {name: critical}
		spec: {hard: {pods: "0"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [system-node-critical]}]}}
	END
	k -n "$driver_ns" delete pod "$(daemon_pod 3)" --wait=false >/dev/null
	worker refused refused 3
	eventually 60 why_is pod/refused DaemonNotCreated
	named DaemonNotCreated "cluster admin" "the daemon of node-3 cannot be created: exceeded quota: critical, requested: pods=1, used: pods=*, limited: pods=0" \
		"install with --set daemon.priorityClassName= , or allow the priority class in the quota"
	for pod in host waits next refused; do not_prepared $pod; done
	why pod/next
	named device-held user "the channel of node-2 is still held by $ns/old (Terminating for *)" "wait until pod $ns/old ends: [5-9]m* of its grace period are left"
	why pod/waits
	named waiting-for-peers "cluster admin" "IMEX on node-1: *it waits for the other nodes of the domain*" "NetworkPolicy \"default-deny\" *"
	as_viewer pod/host
	named session-taken "cluster admin" "*another nvidia-imex on this node owns the driver's only IMEX session*" "Run \`systemctl disable --now nvidia-imex\` on the node."
	as_viewer pod/waits
	named waiting-for-peers "cluster admin" "IMEX on node-1: *it waits for the other nodes of the domain*" "Check the network between the daemon Pods."
	as_viewer pod/next
	named device-held user "the channel of node-2 is still held by $ns/old (Terminating for *)"
	as_viewer pod/refused
	named no-daemon-yet "cluster admin" "no IMEX daemon runs on this node yet; *"
}

forbid_plugins() {
	k label --overwrite namespace "$driver_ns" pod-security.kubernetes.io/enforce=baseline >/dev/null 2>&1
	k -n "$driver_ns" delete pods -l app=compute-domain-kubelet-plugin >/dev/null
}

@test "Pod Security forbids the plugins: a pod with a node gets the cause, a user of one namespace what its Event shows" {
	domain d
	forbid_plugins
	worker early d 0
	not_prepared early
	why pod/early
	named NoPlugin "cluster admin" "4 GPU nodes, 0 plugin pods: violates PodSecurity \"baseline:latest\"*" \
		"kubectl label namespace $driver_ns pod-security.kubernetes.io/enforce=privileged --overwrite"
	as_viewer pod/early
	named NoPlugin "cluster admin" "no plugin is registered with the kubelet of node-0"
}

# bats test_tags=long
@test "Pod Security forbids the plugins: a pod without a node gets the cause, a user of one namespace no hint at it" {
	domain d
	forbid_plugins
	eventually 90 slices_published 0 # the kubelets delete them after half a minute
	waiting late d
	unscheduled late
	why pod/late
	named NoPlugin "cluster admin" "4 GPU nodes, 0 plugin pods: violates PodSecurity \"baseline:latest\"*" \
		"kubectl label namespace $driver_ns pod-security.kubernetes.io/enforce=privileged --overwrite"
	confined late d NoFreeChannel NoChannelOffered
	[[ $answer != *PodSecurity* ]]
}
