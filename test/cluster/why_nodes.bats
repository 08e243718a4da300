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
	[[ -z ${held:-} ]] || { kill -CONT $held; kubelet_verbosity 1; } || true
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
# bats test_tags=long
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

forbidden_for_admin() {
	why pod/early && named NoPlugin "cluster admin" "4 GPU nodes, 0 plugin pods: violates PodSecurity \"baseline:latest\"*" \
		"kubectl label namespace $driver_ns pod-security.kubernetes.io/enforce=privileged --overwrite"
}
forbidden_for_viewer() { as_viewer pod/early && named NoPlugin "cluster admin" "no plugin is registered with the kubelet of node-0"; }
@test "Pod Security forbids the plugins: a pod with a node gets the cause, a user of one namespace what its Event shows" {
	domain d
	forbid_plugins
	worker early d 0
	not_prepared early
	# The DaemonSet's status and Event arrive a moment later. The kubelet may try again only after 60 to 90 s.
	eventually 110 forbidden_for_admin
	eventually 110 forbidden_for_viewer
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

# kubelet_verbosity V: sets the verbosity of the kubelet of node-0. unprepare_called UID: this kubelet has called
# Unprepare for the claim.
kubelet_verbosity() { printf %s "$1" | k replace --raw /api/v1/nodes/node-0/proxy/debug/flags/v -f - >/dev/null; }
unprepare_called() { (. "$cluster/lib.bash" && grep -F -A 5 'Calling NodeUnprepareResource' "$state/nodes/0/kubelet.log" | grep -qF "$1"); }
# gate_runs: the claim of the pod "second" counts as prepared, and its init container runs.
gate_runs() { [[ -n $(k -n "$ns" get pod second -o jsonpath='{.status.initContainerStatuses[0].state.running.startedAt}') ]]; }

# failure: a pod joins during the last Unprepare of its claim -> it starts, or `why` names the kubelet's bug
# bats test_tags=matrix,long
@test "a pod that joins during the last Unprepare of its claim starts later, or why names the bug of its kubelet" {
	local node='nodeSelector: {kubernetes.io/hostname: node-0}' uid
	domain d
	k -n "$ns" apply -f - >/dev/null <<-END
		$(one_device ResourceClaim "$(config "$(domain_uid d)")")
		metadata: {name: both}
	END
	claims_pod first "$node" channel=both
	running first 90
	uid=$(k -n "$ns" get resourceclaim both -o jsonpath='{.metadata.uid}')
	# The plugin gets the call, and does not answer.
	held=$(pids_of_pod "$driver_ns" "$(plugin_pod 0)" compute-domain-kubelet-plugin)
	kubelet_verbosity 4
	kill -STOP $held
	k -n "$ns" delete pod first --wait=false >/dev/null
	eventually 30 unprepare_called "$uid"
	claims_pod second "$node
  initContainers: [{name: gate, image: 'compute-domains/busybox:test', imagePullPolicy: Never, command: [sh, -c, 'until [ -e /tmp/open ]; do sleep 0.1; done']}]" channel=both
	if at_least 37; then
		eventually 20 why_is pod/second BeingUnprepared
		named BeingUnprepared user "the kubelet of node-0 *"
	else
		eventually 20 gate_runs
	fi
	kill -CONT $held
	gone pod/first
	eventually 100 gate_runs # a kubelet retries after 60 to 90 s
	k -n "$ns" exec second -c gate -- touch /tmp/open
	if ! at_least 37; then
		eventually 30 why_is pod/second UnpreparedEarly
		named UnpreparedEarly user "container main: *unable to get claim info for ResourceClaim both *"
		as_viewer pod/second
		named UnpreparedEarly user "container main: *unable to get claim info for ResourceClaim both *"
		k -n "$ns" delete pod second >/dev/null
		claims_pod second "$node" channel=both
	fi
	running second
	has_channel second
}
