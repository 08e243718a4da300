#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Host-managed IMEX on a real cluster: the nodes run nvidia-imex
# themselves, as systemd would, and the driver runs none. The tests cannot see what a CUDA program would see. They can
# see that the driver disturbs nothing.

load driver

NO_CLIQUE='host-managed IMEX requires an NVLink clique on this node; NVML reports none'

# with_host_managed [HELM ARGS...]: the driver with the feature gate, and plugins that query IMEX often enough for a
# test.
with_host_managed() {
	with_driver 4 --set resources.computeDomains.imex.hostProbeInterval=1s "${@:---set=featureGates.HostManagedIMEX=true}"
}

setup_file() {
	"$cluster/up" 4
	"$cluster/host-imex" all start
	with_host_managed
}
teardown_file() {
	"$cluster/host-imex" all stop
}
setup() {
	ns_begin
	k -n default delete events --all >/dev/null # Events of Nodes from an earlier test must not count
}
teardown() { ns_end; }

no_daemon_objects() {
	local names
	names=$(k get daemonsets,resourceclaimtemplates -A -o name) && [[ ! $names =~ compute-?domain-daemon ]] && no_daemons && labels_gone && cliques_gone
}
host_metric() { "$cluster/node" "$1" curl -sf "http://$(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.podIP}'):8081/metrics" | grep -F "$2"; }
host_state_is() { host_metric "$1" "nvidia_dra_compute_domain_host_imex_state{state=\"$2\"} 1" >/dev/null; }
# annotated K STATE: the plugin of a node reports this state of the host's nvidia-imex on its Pod.
annotated() { [[ $(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o "jsonpath={.metadata.annotations.imex\.resource\.nvidia\.com/host-state}") == "$2" ]]; }
# daemons_of K...: prints the process IDs of the nvidia-imex of those hosts. Fails if one does not run.
daemons_of() {
	local k
	for k; do "$cluster/host-imex" "$k" pid || return 1; done
}
plugin_restarts() { k -n "$driver_ns" get pods -l app=compute-domain-kubelet-plugin -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}'; }

# offers K N: the ResourceSlice of a node has this many devices.
offers() { [[ $(k get resourceslices -o json | jq --arg node "node-$1" '[.items[] | select(.spec.nodeName == $node) | .spec.devices // [] | length] | add') == "$2" ]]; }

# restart_plugin K: restarts the plugin of a node, which then looks at the NVIDIA driver again.
restart_plugin() {
	k -n "$driver_ns" delete pod "$(plugin_pod "$1")" >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=60s >/dev/null
}

# bats test_tags=matrix
@test "host IMEX running, one ComputeDomain, one pod per node: each pod sees channel0, and there are no daemon objects anywhere" {
	local i
	domain train
	for i in 0 1 2 3; do worker "w$i" train "$i"; done
	for i in 0 1 2 3; do
		running "w$i"
		[[ $(k -n "$ns" exec "w$i" -- ls /dev/nvidia-caps-imex-channels) == channel0 ]]
		has_not "w$i" /imexd
		eventually 40 host_state_is "$i" UP
	done
	eventually 40 domain_field_is train .status.status Ready
	domain_field_is train .status.nodes ""
	eventually 60 no_daemon_objects
	k get resourceslices -o json | jq -e '[.items[].spec.devices] | length == 4 and all(.[]; map((.basic // {}) + del(.basic)) == [{name: "channel-0",
		attributes: {"id": {int: 0}, "type": {string: "channel"}}}])'
	[[ $(host_metric 0 'host_imex_nodes{state="ready"}') == *" 4" && $(host_metric 0 host_imex_info) == *'status="READY",domain="UP",version="580.95.05"'* ]]
}

@test "feature gates without effect here are forced off, and controller and plugin log that when they start" {
	local gate
	forced_off() { [[ $(k -n "$driver_ns" logs -l "app=$1" --tail=-1 | grep -cF "\"feature gate forced off: it has no meaning when the host runs IMEX\" gate=\"$gate\"") == "$2" ]]; }
	for gate in ComputeDomainCliques IMEXDaemonsWithDNSNames; do
		eventually 30 forced_off compute-domain-controller 2
		eventually 30 forced_off compute-domain-kubelet-plugin 4
	done
}

# bats test_tags=matrix,long
@test "host IMEX is stopped under a running pod: nothing restarts it, no pod restarts, and metric, Node Event and annotation show it" {
	domain train
	worker a train 1
	running a
	local before pod lines others
	before=$(plugin_restarts)
	pod=$(plugin_pod 1)
	lines=$(k -n "$driver_ns" logs "$pod" | wc -l)
	others=$(daemons_of 0 2 3)
	"$cluster/host-imex" 1 stop
	eventually 20 host_state_is 1 DOWN
	eventually 20 node_event 1 "does not start nvidia-imex on hosts" HostIMEXDown
	eventually 20 annotated 1 DOWN
	eventually 20 condition_is train HostIMEXHealthy False
	# The other nodes of the IMEX domain report a missing peer.
	eventually 60 host_state_is 0 DEGRADED
	eventually 20 node_event 0 "198.18.0.11" HostIMEXDegraded
	[[ $("$cluster/host-imex" 1 status) == UNAVAILABLE && $(plugin_restarts) == "$before" ]]
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}') == Running0 ]]
	has_channel a
	domain_field_is train .status.status Ready
	# A pod can start in the meantime. It is up to the operator whether its program finds IMEX.
	k -n "$ns" delete pod a
	worker b train 1
	running b
	# The plugin logs only states of IMEX that it sees, and nothing about starting, stopping or signalling a daemon.
	said_of_imex() { k -n "$driver_ns" logs "$pod" | tail -n "+$((lines + 1))" | grep -i imex; }
	said_of_imex | grep -F '"the host'"'"'s nvidia-imex" state="DOWN"'
	[[ -z $(said_of_imex | grep -vF '] "the host'"'"'s nvidia-imex" state=') ]]
	# It did not start, stop or signal one without a log line either.
	[[ $(daemons_of 0 2 3) == "$others" && -z $(pids_of_pod "$driver_ns" "$pod" nvidia-imex) ]]
	[[ $("$cluster/host-imex" 1 status) == UNAVAILABLE ]]
	"$cluster/host-imex" 1 start
	eventually 40 host_state_is 1 UP
	eventually 20 node_event 1 "READY" HostIMEXUp
	eventually 20 annotated 1 UP
	eventually 60 condition_is train HostIMEXHealthy True
}

# bats test_tags=long
@test "host IMEX is down when the plugin starts: the slice is published, a pod with a channel runs, DOWN is reported, and nothing starts IMEX" {
	"$cluster/host-imex" 1 stop
	# The Event of the plugin that saw IMEX stop must not count as the Event of the plugin that starts now.
	eventually 20 node_event 1 "does not start nvidia-imex on hosts" HostIMEXDown
	k -n default delete events --all >/dev/null
	restart_plugin 1
	eventually 20 host_state_is 1 DOWN
	eventually 20 node_event 1 "does not start nvidia-imex on hosts" HostIMEXDown
	eventually 20 annotated 1 DOWN
	# The slice of the former plugin is deleted, so that the test sees the new one.
	k delete "$(k get resourceslices -o json | jq -r '.items[] | select(.spec.nodeName == "node-1") | "resourceslice/" + .metadata.name')" >/dev/null
	eventually 30 offers 1 1
	domain train
	worker a train 1
	running a
	has_channel a
	eventually 10 domain_field_is train .status.status Ready
	eventually 60 condition_is train HostIMEXHealthy False
	[[ $(condition train HostIMEXHealthy message) == *node-1* ]]
	[[ $("$cluster/host-imex" 1 status) == UNAVAILABLE ]]
	[[ $(k -n "$driver_ns" get pod "$(plugin_pod 1)" -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	"$cluster/host-imex" 1 start
	eventually 40 host_state_is 1 UP
	eventually 60 condition_is train HostIMEXHealthy True
}

# bats test_tags=matrix
@test "a second claim for a channel on the same node waits in the scheduler" {
	domain train
	worker a train 0
	running a
	worker b train 0
	k -n "$ns" wait --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].status}'=False pod/b --timeout=30s
	k -n "$ns" delete pod a
	running b 90
	has_channel b
}

@test "allocationMode All: the pod fails with a clear permanent error of Prepare" {
	domain every 0 All
	worker a every 0
	refused_with a 'allocationMode "All" is not possible with host-managed IMEX'
	refused_with a HostManagedIMEX=true
}

@test "an unknown allocationMode in the opaque configuration is refused" {
	domain d
	claimed_by_hand bad "$(config "$(domain_uid d)" ComputeDomainChannelConfig ', allocationMode: foo')"
	refused_with bad 'allocationMode "foo"'
}

@test "no clique ID: the pod fails with a clear permanent error of Prepare that names the missing clique ID" {
	"$cluster/gpu" 2 FABRIC_STATE=0
	restart_plugin 2
	domain d
	worker a d 2
	refused_with a "$NO_CLIQUE"
	"$cluster/gpu" 2 FABRIC_STATE=3
	k -n "$ns" delete pod a
	restart_plugin 2
}

# bats test_tags=long
@test "two partitions, so two host IMEX domains: one ComputeDomain spans them, and the operator is responsible for isolation" {
	"$cluster/clique" 3 2
	"$cluster/host-imex" 3 stop
	"$cluster/host-imex" 3 start
	restart_plugin 3
	domain d
	worker a d 0
	worker b d 3
	running a
	running b
	has_channel a
	has_channel b
	eventually 30 host_state_is 3 UP
	[[ $(host_metric 3 'host_imex_nodes{state="listed"}') == *" 1" ]]
	k -n "$ns" delete pod a b
	"$cluster/clique" 3 1
	"$cluster/host-imex" 3 stop
	"$cluster/host-imex" 3 start
	restart_plugin 3
}

# bats test_tags=long
@test "two ComputeDomains in one partition: both use channel 0" {
	domain left
	domain right
	worker l left 0
	worker r right 1
	running l
	running r
	has_channel l
	has_channel r
}

# bats test_tags=long
@test "a nonzero numNodes is ignored, and never rejected" {
	domain many 9
	worker a many 0
	running a
	eventually 10 domain_field_is many .status.status Ready
}

@test "a daemon claim reaches Prepare: a permanent error, by its configuration and by its device" {
	domain d
	daemon_policy Audit # because such claims may be older than the policy
	claimed_by_hand config "$(config "$(domain_uid d)" ComputeDomainDaemonConfig)"
	refused_with config "daemon claims are disabled"
	k -n "$ns" delete pod config
	# Such claims may be left from driver-managed mode. The scheduler would not allocate a device that no plugin
	# publishes.
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: stale}
spec: {devices: {requests: [{name: daemon, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: stale}
spec:
  schedulerName: this-test # the test itself binds the pod when the claim is complete
  terminationGracePeriodSeconds: 0
  resourceClaims: [{name: daemon, resourceClaimName: stale}]
  containers: [{name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"], resources: {claims: [{name: daemon}]}}]
END
	k -n "$ns" patch resourceclaim stale --subresource=status --type=merge -p "$(cat <<END
{"status": {"reservedFor": [{"resource": "pods", "name": "stale", "uid": "$(k -n "$ns" get pod stale -o jsonpath='{.metadata.uid}')"}],
 "allocation": {"devices": {"results": [{"request": "daemon", "driver": "compute-domain.nvidia.com", "pool": "node-0", "device": "daemon-0"}],
  "config": [{"source": "FromClaim", "opaque": {"driver": "compute-domain.nvidia.com", "parameters":
   {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainDaemonConfig", "domainID": "$(domain_uid d)"}}}]},
  "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]}]}}}}
END
)" >/dev/null
	k create --raw "/api/v1/namespaces/$ns/pods/stale/binding" -f - >/dev/null <<<'{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "stale"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"}}'
	refused_with stale "daemon claims are disabled"
	k -n "$ns" delete pod stale
	k -n "$ns" delete resourceclaim stale
	daemon_policy Deny
}

@test "the host's device node of channel 0 is missing, but its major number is registered: Prepare succeeds with a warning" {
	local chardev=/run/nvidia/driver/dev/nvidia-caps-imex-channels/channel0
	"$cluster/node" 0 rm "$chardev"
	domain d
	worker a d 0
	running a
	has_channel a
	refused_with a "node node-0 has no /dev/nvidia-caps-imex-channels/channel0"
	"$cluster/node" 0 mknod "$chardev" c 240 0
}

# bats test_tags=long
@test "the major number is missing in /proc/devices when the plugin starts: the plugin continues, publishes no device, reports why, and publishes it when it appears" {
	local devices=/run/nvidia/driver/proc/devices name pod
	# The file is changed in place, because it is mounted in the pod.
	"$cluster/node" 0 sh -c "grep -v nvidia-caps-imex-channels $devices >/tmp/devices; cat /tmp/devices >$devices"
	restart_plugin 0
	pod=$(plugin_pod 0)
	eventually 30 offers 0 0
	eventually 20 node_event 0 nvidia-caps-imex-channels ComputeDomainDevicesWithheld
	host_metric 0 'nvidia_dra_compute_domain_devices_withheld{reason="NoIMEXChannels"} 1'
	k -n "$driver_ns" logs "$pod" | grep NoIMEXChannels
	"$cluster/node" 0 sh -c "sed 's/^195 nvidia$/&\n240 nvidia-caps-imex-channels/' $devices >/tmp/devices; cat /tmp/devices >$devices"
	eventually 30 offers 0 1
	[[ $(plugin_pod 0) == "$pod" && $(k -n "$driver_ns" get pod "$pod" -o jsonpath='{.status.containerStatuses[0].restartCount}') == 0 ]]
	domain d
	worker a d 0
	running a
	has_channel a
}

# bats test_tags=long
@test "Unprepare removes the claim's files while host IMEX is down and the API server does not answer" {
	domain d
	worker a d 0
	running a
	local uid
	uid=$(k -n "$ns" get resourceclaims -o jsonpath='{.items[0].metadata.uid}')
	"$cluster/host-imex" 0 stop
	k -n "$ns" delete pod a --wait=false
	"$cluster/apiserver" stop
	eventually 60 no_claim_file 0 "$uid"
	"$cluster/apiserver" start
	gone pod/a
	"$cluster/host-imex" 0 start
}

# bats test_tags=long
@test "nodes_config.cfg differs between nodes: the IMEX domain is degraded, and pods still start" {
	"$cluster/node" 2 sh -c 'sed -i 1d /etc/nvidia-imex/nodes_config.cfg'
	"$cluster/host-imex" 2 restart
	domain d
	worker a d 2
	running a
	has_channel a
	eventually 40 host_state_is 0 DEGRADED
	# After two nodes with different node lists have met, IMEX blocks the pair until both have been stopped.
	"$cluster/host-imex" all stop
	"$cluster/host-imex" all start
	eventually 60 host_state_is 0 UP
}

# imex_exits_without K HOW CAUSE: runs HOW, a shell command on the node that changes nodes_config.cfg. The host's
# service then exits for this cause.
imex_exits_without() {
	"$cluster/node" "$1" sh -c "$2"
	run "$cluster/host-imex" "$1" restart
	[[ $status -ne 0 && $output == *"has ended"*"$3"* ]] || { echo "$output" && return 1; }
}
# bats test_tags=long
@test "nodes_config.cfg is missing or empty: nvidia-imex.service exits, channel-0 stays published, and pods start" {
	local k
	imex_exits_without 2 'rm /etc/nvidia-imex/nodes_config.cfg' "Failed to open node configuration file"
	imex_exits_without 3 ': >/etc/nvidia-imex/nodes_config.cfg' "No entries in node configuration file"
	domain d
	for k in 2 3; do
		eventually 40 host_state_is $k DOWN
		offers $k 1
		worker w$k d $k
	done
	for k in 2 3; do
		running w$k
		has_channel w$k
		run "$cluster/host-imex" $k pid
		[[ $status -ne 0 && $output == *"no nvidia-imex runs"* ]]
	done
	eventually 10 domain_field_is d .status.status Ready
	for k in 2 3; do "$cluster/host-imex" $k start; done
	for k in 2 3; do eventually 60 host_state_is $k UP; done
}

with_wait_for_host() { with_host_managed --set resources.computeDomains.imex.mode=hostManaged --set resources.computeDomains.imex.waitForHost=true; }
# waits_for_host POD K: the pod of ComputeDomain d on this node starts after the host's IMEX is READY.
waits_for_host() {
	"$cluster/host-imex" "$2" stop
	eventually 20 host_state_is "$2" DOWN
	worker "$1" d "$2"
	claim_started() { "$cluster/node" "$1" grep -q PrepareStarted "$plugin_dir/checkpoint.json"; }
	eventually 30 claim_started "$2"
	"$cluster/host-imex" "$2" start
	running "$1"
	has_channel "$1"
}

# bats test_tags=long
@test "imex.waitForHost: a pod waits until the host's IMEX is READY" {
	with_wait_for_host
	domain d
	waits_for_host a 0
	no_daemon_objects
}

# bats test_tags=long
@test "imex.waitForHost: a node without a clique ID refuses a pod nevertheless, and pods continue with the value of the Go driver" {
	with_wait_for_host
	domain d
	worker a d 0
	running a
	"$cluster/gpu" 2 FABRIC_STATE=0
	restart_plugin 2
	worker b d 2
	refused_with b "$NO_CLIQUE"
	no_daemon_objects
	"$cluster/gpu" 2 FABRIC_STATE=3
	k -n "$ns" delete pod b
	restart_plugin 2
	# A ComputeDomain that formed with one spelling of the value continues with the other, and so do its pods. The Go
	# driver's spelling waits, too.
	with_host_managed --set resources.computeDomains.imex.mode=hostManaged --set featureGates.HostManagedIMEXDaemon=true
	[[ $(k -n "$ns" get pod a -o jsonpath='{.status.phase}{.status.containerStatuses[0].restartCount}') == Running0 ]]
	domain_field_is d .status.status Ready
	waits_for_host c 1
	k -n "$ns" delete pod a c
}

# failure: the host's nvidia-imex runs beside a daemon -> an Event reports it, and IMEX starts when it is
#   stopped [imex]
# bats test_tags=long
@test "driver-managed IMEX reports that the host's nvidia-imex runs on the node, does not crash-loop, and continues when that is stopped" {
	with_driver 4
	"$cluster/host-imex" 0 status
	domain d
	worker a d 0
	eventually 60 node_event 0 "stop and disable the host's nvidia-imex.service" HostIMEXConflict
	eventually 30 event_contains ComputeDomain/d "owns the driver's only IMEX session"
	[[ $(daemon_restarts 0) == 0 ]]
	"$cluster/host-imex" 0 stop
	running a 120
	has_channel a
}
