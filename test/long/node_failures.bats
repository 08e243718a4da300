#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Failures of a node, its disk and its plugin, and how the ComputeDomain survives them. Each test is named after its
# failure.

load ../cluster/driver
load ../cluster/unprepared

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() {
	[[ -n ${BATS_TEST_COMPLETED:-} ]] || repair
	ns_end
}

# Repairs what a test that failed halfway may have left broken.
repair() {
	local i
	for i in 2 3; do "$cluster/power" "$i" on; done
	k uncordon node-2 node-3 >/dev/null
	k taint node node-2 node.kubernetes.io/out-of-service- >/dev/null 2>&1 || true
	"$cluster/node" 2 umount -l "$plugin_dir" 2>/dev/null || true
	"$cluster/gpu" 3 FABRIC_STATE=3
}

node_entry() { domain_field d ".status.nodes[?(@.name=='node-$1')].$2"; }
entry_gone() { [[ -z $(node_entry "$1" name) ]]; }
node_is() { [[ $(k get node "node-$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}') == "$2" ]]; }

# failure: nodes are powered off for good -> their indices are free by taint or deletion of the Node
#   [powered-off]
@test "nodes are powered off for good: lost as soon as Kubernetes reports it, their indices are free by the out-of-service taint or without a Node, others continue, and they may come back" {
	# No controller may run on these nodes.
	k cordon node-2 node-3 >/dev/null
	k -n "$driver_ns" delete pod -l app=compute-domain-controller >/dev/null
	k -n "$driver_ns" rollout status deployment/compute-domains-controller --timeout=60s >/dev/null
	k uncordon node-2 node-3 >/dev/null
	domain d
	local i
	for i in 0 2 3; do worker "w$i" d "$i"; done
	for i in 0 2 3; do running "w$i"; done
	eventually 45 condition_is d PeersConnected True
	local index2 index3 stays
	index2=$(node_entry 2 index) index3=$(node_entry 3 index)
	stays="$(daemon_identity 0) $(imex_pid 0)"
	"$cluster/power" 2 off
	"$cluster/power" 3 off
	local off=$SECONDS
	# Kubernetes needs 40 to 60 s: a kubelet renews its lease every 10 s, and Kubernetes checks it every 5 s and
	# accepts it for 50 s.
	eventually 65 node_is 2 Unknown
	eventually $((off + 65 - SECONDS)) node_is 3 Unknown
	reported() { event_contains ComputeDomain/d "Node node-$1 is lost" && [[ $(node_entry "$1" status) == NotReady ]]; }
	eventually 15 reported 2
	eventually 15 reported 3
	echo "reported as lost $((SECONDS - off)) s after the power was cut"
	[[ $(condition d Ready reason) == NodeLost && $(node_entry 0 status) == Ready ]]
	# The node may be running behind a broken network: its index stays.
	[[ $(node_entry 2 index) == "$index2" && $(node_entry 3 index) == "$index3" ]]
	# The taint proves that it does not run.
	k taint node node-2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute >/dev/null
	k delete node node-3 >/dev/null
	eventually 30 entry_gone 2
	# A deleted Node is proof after a minute.
	eventually 90 entry_gone 3
	eventually 30 domain_field_is d .status.nodesReady 1
	worker w1 d 1
	running w1
	eventually 45 condition_is d PeersConnected True
	[[ $(node_entry 1 index) != "$(node_entry 0 index)" ]]
	# The nodes come back, and get indices that no other node has.
	"$cluster/power" 2 on
	"$cluster/power" 3 on
	k taint node node-2 node.kubernetes.io/out-of-service- >/dev/null
	for i in 2 3; do
		k -n "$ns" delete pod "w$i" --ignore-not-found >/dev/null
		worker "v$i" d "$i"
	done
	running v2 150
	running v3 150
	eventually 60 domain_field_is d .status.nodesReady 4
	eventually 60 condition_is d PeersConnected True
	[[ $(domain_field d '.status.nodes[*].index' | xargs -n1 | sort -u | wc -l) == 4 ]]
	[[ "$(daemon_identity 0) $(imex_pid 0)" == "$stays" ]]
	eventually 60 daemons_current
}

# failure: the checkpoint is truncated or garbage -> it is rebuilt, and an Event reports it [plugin]
@test "the checkpoint is truncated, then garbage: it is set aside, rebuilt, and reported" {
	domain d
	worker a d 1
	running a
	local uid pod
	uid=$(claim_uid a)
	corrupt() {
		pod=$(plugin_pod 1)
		local before
		before=$(restarts "$pod")
		kill_in_pod "$driver_ns" "$pod" compute-domain-kubelet-plugin
		"$cluster/node" 1 sh -c "$1"
		eventually 60 restarted "$pod" "$before"
		eventually 30 checkpoint_has 1 "$uid" PrepareCompleted
	}
	corrupt "truncate -s 40 $plugin_dir/checkpoint.json"
	eventually 20 event_contains Node/node-1 "checkpoint was corrupt" default
	corrupt "head -c 3000 /dev/urandom >$plugin_dir/checkpoint.json"
	[[ $("$cluster/node" 1 ls "$plugin_dir" | grep -c 'checkpoint.json.corrupt-') -ge 2 ]]
	has_channel a
	k -n "$ns" delete pod a
	eventually 30 no_claim_file 1 "$uid"
	eventually 60 daemons_idle 4
	"$cluster/node" 1 sh -c "rm $plugin_dir/checkpoint.json.corrupt-*"
}

# failure: the disk is full while a claim is recorded -> an Event of the pod reports it [plugin]
@test "the disk is full while a claim is recorded: an Event of the pod reports it, and the next pod starts when there is space" {
	disk_full_in_prepare
	# The kubelet calls the plugin for another pod at once. It retries for the first one only after a minute or more.
	k -n "$ns" delete pod a
	worker b d 2
	running b
	has_channel b
	disk_as_before b
}

# failure: the fabric of a node registers late -> the node offers its channel afterwards [host]
@test "the NVLink fabric of a node registers late: the node offers its channel afterwards" {
	"$cluster/gpu" 3 FABRIC_STATE=2
	k -n "$driver_ns" delete pod "$(plugin_pod 3)"
	plugins_settle
	withheld() { ! k get resourceslices -o json | jq -e '[.items[] | select(.spec.nodeName == "node-3") | .spec.devices[]] | length > 0' >/dev/null; }
	eventually 30 withheld
	eventually 20 event_contains Node/node-3 "regist" default
	domain d
	worker a d 3
	k -n "$ns" wait --for=jsonpath='{.status.conditions[?(@.type=="PodScheduled")].status}'=False pod/a --timeout=30s
	"$cluster/gpu" 3 FABRIC_STATE=3
	running a 120
	has_channel a
}
