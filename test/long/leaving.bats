#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pods leave their nodes, and ComputeDomains end, while other clients act on Nodes and ComputeDomains.

load ../cluster/driver

setup_file() { with_driver 2; }
setup() { ns_begin; }
teardown() {
	k taint nodes --all example.com/maintenance- >/dev/null 2>&1 || true
	k -n "$ns" patch computedomain held --type=json -p '[{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/keep"},
		{"op": "remove", "path": "/metadata/finalizers/0"}]' >/dev/null 2>&1 || true
	ns_end
}

# failure: a NoExecute taint evicts pods -> the plugin stays, and the pods end within 30 s
@test "a NoExecute taint: the pod ends within 30 s" {
	domain d
	worker w d 1
	running w
	local plugin
	plugin=$(plugin_pod 1)
	k taint node node-1 example.com/maintenance=yes:NoExecute >/dev/null
	gone pod/w 30
	[[ $(plugin_pod 1) == "$plugin" ]]
	k taint node node-1 example.com/maintenance- >/dev/null
}

# Grove does this: its finalizer protects a ComputeDomain while its workload uses it.
# failure: a foreign finalizer remains on a deleted ComputeDomain -> an Event names it, and IMEX continues
#   [controller]
@test "a ComputeDomain is deleted, and another controller's finalizer remains: an Event names it, and IMEX runs until the pod has ended" {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: held, finalizers: [example.com/keep]}
spec: {numNodes: 0, channel: {resourceClaimTemplate: {name: held}}}
END
	worker w held 1
	running w
	local imex mark
	imex=$(imex_pid 1)
	k -n "$ns" delete computedomain held --wait=false >/dev/null
	eventually 20 event_contains ComputeDomain/held example.com/keep
	mark=$("$cluster/audit" mark)
	for_seconds 65 daemon_is_ready 1
	[[ $(imex_pid 1) == "$imex" ]]
	# It may write the status of the ComputeDomain, but not again and again.
	"$cluster/audit" "$mark" >"$BATS_TEST_TMPDIR/audit"
	[[ -s $BATS_TEST_TMPDIR/audit ]]
	[[ $(grep -cE ":$(controller_account) (create|update|patch|delete) computedomains[/ ]" "$BATS_TEST_TMPDIR/audit") -le 1 ]]
	k -n "$ns" delete pod w --wait=false >/dev/null
	gone pod/w 30
	k -n "$ns" patch computedomain held --type=json -p '[{"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/keep"},
		{"op": "remove", "path": "/metadata/finalizers/0"}]' >/dev/null
	gone computedomain/held 60
	eventually 30 daemon_state_is 1 IDLE
}

labelled() { [[ $(k get node "node-$1" -o json | jq -r --arg key "$uid_label" '.metadata.labels[$key] // ""') == "$2" ]]; }

# failure: a person sets the driver's label on a Node -> an Event reports it, and the label is removed [controller]
@test "a node's label is set by hand before there are pods: an Event of the Node reports it, and the label is removed" {
	domain d
	eventually 10 domain_uid d
	local uid
	uid=$(domain_uid d)
	k label node node-1 "$uid_label=$uid" --overwrite >/dev/null
	eventually 20 node_event 1 "$uid_label was set to $uid" ComputeDomainLabelChanged
	eventually 20 labelled 1 ""
	worker w d 1
	running w
	eventually 20 labelled 1 "$uid"
}

# failure: a script overwrites the driver's label on a Node -> an Event reports it, and the label is restored
#   [controller]
@test "a script replaces the label of a running pod's ComputeDomain by another one: an Event of the Node reports it, and the label is restored" {
	domain a
	domain b
	worker w b 1
	running w
	local a b
	a=$(domain_uid a)
	b=$(domain_uid b)
	eventually 20 labelled 1 "$b"
	k label node node-1 "$uid_label=$a" --overwrite >/dev/null
	eventually 20 node_event 1 "$uid_label was set to $a" ComputeDomainLabelChanged
	eventually 20 labelled 1 "$b"
	eventually 60 domain_field_is b .status.status Ready
}

plugin_selects() {
	"$cluster/helm" upgrade compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --values "$cluster/driver-values.yaml" \
		--wait --timeout 120s "$@" >/dev/null
	k -n "$driver_ns" rollout status daemonset/compute-domains-kubelet-plugin --timeout=120s >/dev/null
}
channels_withdrawn() { [[ $(k get resourceslices --field-selector "spec.nodeName=node-$1,spec.driver=compute-domain.nvidia.com" -o json | jq '[.items[].spec.devices[]? | select(.name | startswith("channel"))] | length') == 0 ]]; }
plugin_runs() { [[ $(k -n "$driver_ns" get pod "$(plugin_pod "$1")" -o jsonpath='{.status.containerStatuses[0].ready} {.metadata.deletionTimestamp}') == "true " ]]; }

# NVIDIA's driver manager changes the label, waits, and evicts the workload afterwards.
# failure: the plugin's node label is removed before pods are evicted -> the plugin stays until they have
#   ended
@test "the plugin's node label is removed before the pods are evicted: the plugin stays until they have ended; an upgrade does not wait" {
	k label nodes --all field.example.com/dra=true --overwrite >/dev/null
	plugin_selects --set-string 'kubeletPlugin.nodeSelector.field\.example\.com/dra=true'
	domain d
	worker w d 1
	running w
	local plugin
	plugin=$(plugin_pod 1)
	# The Node has the label, so a plugin that is replaced ends at once.
	k -n "$driver_ns" delete pod "$plugin" --wait=false >/dev/null
	k -n "$driver_ns" wait --for=delete "pod/$plugin" --timeout=10s >/dev/null
	eventually 60 plugin_runs 1
	plugin=$(plugin_pod 1)
	k label node node-1 field.example.com/dra=paused-for-driver-upgrade --overwrite >/dev/null
	eventually 20 node_event 1 "$ns/" PluginWaitsForPods
	eventually 20 channels_withdrawn 1
	for_seconds 5 k -n "$driver_ns" get pod "$plugin" >/dev/null
	k -n "$ns" delete pod w --wait=false >/dev/null
	gone pod/w 30
	k -n "$driver_ns" wait --for=delete "pod/$plugin" --timeout=30s >/dev/null
	# The driver is replaced, and the label is set again.
	k label node node-1 field.example.com/dra=true --overwrite >/dev/null
	eventually 60 plugin_runs 1
	worker again d 1
	running again
	plugin_selects
	k label nodes --all field.example.com/dra- >/dev/null
}
