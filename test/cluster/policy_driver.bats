#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The admission policies with a running driver: no other workload gets daemon devices, and no request of the driver's
# own programs is denied, also while the chart is upgraded.

load driver

nodes=4 # as in the files before and after this one: it takes a while to remove and add nodes
implicit=deviceclass.resource.kubernetes.io/compute-domain-daemon.nvidia.com

setup_file() { with_driver $nodes; }
setup() { ns_begin; }
teardown() {
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	k delete deviceclass any-of-this-driver --ignore-not-found >/dev/null
	ns_end
}

# not_scheduled POD SENTENCE: the scheduler cannot place the pod, and reports this reason.
not_scheduled() { [[ $(k -n "$ns" get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}') == *"$2"* ]]; }

# tenant POD NODE SPEC-MEMBERS CONTAINER-MEMBERS [ARGUMENT]: a pod of a tenant on this node.
tenant() {
	k -n "$ns" apply -f - "${@:5}" >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: node-$2}
  $3
  containers: [{name: main, image: "compute-domains/busybox:test", imagePullPolicy: Never, command: [sleep, "1000000"], $4}]
END
}

# forms_on NODE: a ComputeDomain forms there, for which the node's daemon needs daemon-0.
forms_on() {
	domain "forms-$1"
	worker "forms-$1" "forms-$1" "$1"
	running "forms-$1"
	has_channel "forms-$1"
}

# daemon_claims: prints the owners of the daemon devices, "NAMESPACE NODE" per line.
daemon_claims() {
	k get resourceclaims -A -o json | jq -r '.items[] | .metadata.namespace as $ns | .status.allocation.devices.results[]? | select(.device == "daemon-0") | "\($ns) \(.pool)"'
}
# free_device NODE: daemon-0 of this node is free, and its daemon does not run. The controllers would start it again.
free_device() {
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s >/dev/null
	k label node "node-$1" $daemon_label- >/dev/null
	eventually 60 device_is_free "$1"
}
device_is_free() { [[ $(daemon_claims) != *" node-$1"* ]]; }
# denied_pod_gone POD: each attempt to schedule the pod reserves the device in the scheduler's memory for a moment. A
# daemon's Pod that is scheduled then waits for up to five minutes, because no event follows. So it is deleted first.
denied_pod_gone() { k -n "$ns" delete pod "$1" >/dev/null; }
# daemon_again NODE: the tenant does not have the device, and the daemon has it again.
daemon_again() {
	device_is_free "$1"
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	eventually 150 daemons_idle $nodes
	[[ $(daemon_claims | sort) == "$(printf "$driver_ns node-%s\n" 0 1 2 3)" ]]
}

# not_refused MARK: no request of the driver's programs was denied since this mark of the audit log.
not_refused() {
	local requests
	requests=$("$cluster/audit" "$1") || return
	! grep -E "system:serviceaccount:$driver_ns:.* (403|422)$" >&2 <<<"$requests" || return 1
}

# failure: a tenant requests daemon-0 -> it gets none, and a ComputeDomain forms there
# bats test_tags=matrix
@test "a tenant's claim, claim template or device class does not get daemon-0, and a ComputeDomain forms there" {
	local mark claim version
	mark=$("$cluster/audit" mark)
	version=$(resource_version)
	claim="{devices: {requests: $(in_api_version "$version" "[{name: d, exactly: {deviceClassName: compute-domain-daemon.nvidia.com}}]")}}"
	# The kubectl of Kubernetes 1.32 parses input that begins with a brace as JSON only.
	mine() { printf '%s\n' "apiVersion: resource.k8s.io/$version" "kind: $1" "metadata: {name: mine}" "spec: $2"; }
	run k -n "$ns" create -f - <<<"$(mine ResourceClaim "$claim")"
	[[ $status != 0 && $output == *"is for the IMEX daemons that the driver starts itself"* ]]
	run k -n "$ns" create -f - <<<"$(mine ResourceClaimTemplate "{spec: $claim}")"
	[[ $status != 0 && $output == *"is for the IMEX daemons that the driver starts itself"* ]]

	k apply -f - >/dev/null <<-END
		apiVersion: resource.k8s.io/$version
		kind: DeviceClass
		metadata: {name: any-of-this-driver}
		spec: {selectors: [{cel: {expression: "device.driver == 'compute-domain.nvidia.com'"}}]}
	END
	free_device 1
	local is_daemon="device.attributes['compute-domain.nvidia.com'].type == 'daemon'"
	k -n "$ns" create -f - >/dev/null <<-END
		apiVersion: resource.k8s.io/v1beta1
		kind: ResourceClaim
		metadata: {name: sly}
		spec: {devices: {requests: [{name: d, deviceClassName: any-of-this-driver, selectors: [{cel: {expression: "$is_daemon"}}]}]}}
	END
	tenant sly 1 "resourceClaims: [{name: d, resourceClaimName: sly}]" "resources: {claims: [{name: d}]}"
	eventually 60 not_scheduled sly "the device daemon-0 of compute-domain.nvidia.com is for the IMEX daemons that the driver starts itself"
	[[ $(k -n "$ns" get pod sly -o jsonpath='{.status.phase}') == Pending ]]
	denied_pod_gone sly
	daemon_again 1
	forms_on 1
	not_refused "$mark"
}

# pod_policy Deny|Audit: sets whether the policy for pods denies or only audits, and waits until the API server does
# so.
pod_policy() {
	k patch validatingadmissionpolicybinding compute-domains-daemon-extended-resource --type=merge -p "{\"spec\": {\"validationActions\": [\"$1\"]}}" >/dev/null
	eventually 30 pod_policy_is "$1"
}
pod_policy_is() {
	local answer
	answer=$(tenant asks 0 "" "resources: {limits: {$implicit: 1}}" --dry-run=server 2>&1) || true
	if [[ $1 == Deny ]]; then [[ $answer == *"the extended resource $implicit is for the IMEX daemons that the driver starts itself"* ]]; else [[ -z $answer ]]; fi
}

# failure: a tenant's pod requests daemon-0 as an extended resource -> it is refused
# bats test_tags=matrix
@test "a tenant's pod with the extended resource of daemon-0 is denied, the scheduler does not get the device for it, and a ComputeDomain forms there" {
	since 36 "the scheduler makes claims for extended resources from 1.36 on"
	local mark
	mark=$("$cluster/audit" mark)
	pod_policy_is Deny
	run tenant init 0 "initContainers: [{name: i, image: i, resources: {limits: {$implicit: 1}}}]" ""
	[[ $status != 0 && $output == *"the extended resource $implicit is for the IMEX daemons"* ]]
	# A pod that was created before the policy.
	pod_policy Audit
	free_device 0
	tenant implicit 0 "" "resources: {limits: {$implicit: 1}}"
	eventually 60 not_scheduled implicit "the device class compute-domain-daemon.nvidia.com is for the IMEX daemons that the driver starts itself"
	pod_policy Deny
	denied_pod_gone implicit
	daemon_again 0
	forms_on 0
	not_refused "$mark"
}

# failure: a pod requests a channel as an extended resource -> it is refused
# bats test_tags=matrix
@test "a tenant's pod with the extended resource of a channel is denied" {
	local channel=deviceclass.resource.kubernetes.io/compute-domain-default-channel.nvidia.com
	local sentence="the extended resource $channel names no ComputeDomain; a workload gets its channel by the claim template"
	since 36 "the scheduler makes claims for extended resources from 1.36 on"
	pod_policy_is Deny
	run tenant init 0 "initContainers: [{name: i, image: i, resources: {limits: {$channel: 1}}}]" ""
	[[ $status != 0 && $output == *"$sentence"* ]]
	run tenant asks 0 "" "resources: {limits: {$channel: 1}}"
	[[ $status != 0 && $output == *"$sentence"* ]]
	# A pod that was created before the policy: the scheduler's claim is denied, and the node's channel stays free.
	pod_policy Audit
	tenant implicit 0 "" "resources: {limits: {$channel: 1}}"
	eventually 60 not_scheduled implicit "the device class compute-domain-default-channel.nvidia.com gives a channel of a ComputeDomain"
	pod_policy Deny
	prints_nothing k -n "$ns" get resourceclaims -o name
	k -n "$ns" delete pod implicit >/dev/null
	forms_on 0
}

# For instance, the new image cannot be pulled: the new policies exist, and the old programs still run.
# failure: an upgrade is stuck -> the programs of the earlier version work with the new policies [upgrade]
@test "while an upgrade is stuck, the programs of the earlier version work with the new policies" {
	local mark
	mark=$("$cluster/audit" mark)
	"$cluster/helm" upgrade compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --values "$cluster/driver-values.yaml" \
		--set image.tag=v99 --set image.pullPolicy=Never --set kubeletPlugin.updateStrategy.type=OnDelete --set kubeletPlugin.updateStrategy.rollingUpdate=null >/dev/null
	eventually 60 upgrade_is_stuck
	forms_on 0
	[[ $(daemon_field 0 '.spec.containers[0].image') == *:v0.2.0 ]]
	k -n "$ns" delete pod forms-0 --wait=false >/dev/null
	k -n "$ns" delete computedomain forms-0 --timeout=90s >/dev/null
	not_refused "$mark"
}
upgrade_is_stuck() { k -n "$driver_ns" get pods -l app=compute-domain-controller -o json | jq -e 'any(.items[].status.containerStatuses[]?; .state.waiting.reason == "ErrImageNeverPull")' >/dev/null; }
