#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The admission policies with the driver at work: nobody else gets the daemons' device, and nothing that our own programs write is
# refused, neither today nor while the chart is upgraded.

load driver

nodes=2
implicit=deviceclass.resource.kubernetes.io/compute-domain-daemon.nvidia.com

setup_file() { with_driver $nodes; }
setup() { ns_begin; }
teardown() {
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	k delete deviceclass any-of-this-driver --ignore-not-found >/dev/null
	ns_end
}
# The tests after this file want the driver as it is installed by itself.
teardown_file() { with_driver $nodes; }

# not_scheduled POD SENTENCE: the scheduler has given up for now, and says why.
not_scheduled() { [[ $(k -n "$ns" get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}') == *"$2"* ]]; }

# tenant POD NODE SPEC-MEMBERS CONTAINER-MEMBERS [ARGUMENT]: a pod of a tenant on one node.
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

# forms_on NODE: a domain forms there, for which the node's daemon needs daemon-0.
forms_on() {
	domain "forms-$1"
	worker "forms-$1" "forms-$1" "$1"
	running "forms-$1"
	has_channel "forms-$1"
}

# daemon_claims: whose the devices daemon-0 are, "NAMESPACE NODE" a line each.
daemon_claims() {
	k get resourceclaims -A -o json | jq -r '.items[] | .metadata.namespace as $ns | .status.allocation.devices.results[]? | select(.device == "daemon-0") | "\($ns) \(.pool)"'
}
# free_device NODE: nobody has daemon-0 of that node, not even the daemon there, which the controllers would start again.
free_device() {
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=0 >/dev/null
	k -n "$driver_ns" wait --for=delete pod -l app=compute-domain-controller --timeout=60s >/dev/null
	k label node "node-$1" $daemon_label- >/dev/null
	eventually 60 device_is_free "$1"
}
device_is_free() { [[ $(daemon_claims) != *" node-$1"* ]]; }
# daemon_again NODE: a tenant has not got the device, and the daemon has it again.
daemon_again() {
	device_is_free "$1"
	k -n "$driver_ns" scale deployment compute-domains-controller --replicas=2 >/dev/null
	eventually 90 daemons_idle $nodes
	[[ $(daemon_claims | sort | xargs) == "$driver_ns node-0 $driver_ns node-1" ]]
}

# not_refused MARK: whatever our programs asked of the API server since then.
not_refused() {
	local refused
	refused=$("$cluster/audit" "$1" | grep -E "system:serviceaccount:$driver_ns:.* (403|422)$") || return 0
	echo "refused: $refused" >&2
	return 1
}

# failure: a tenant requests daemon-0 -> it gets none, and a ComputeDomain forms there
# bats test_tags=matrix
@test "a tenant's claim, claim template or device class does not get daemon-0, and a domain forms there" {
	local mark claim version
	mark=$("$cluster/audit" mark)
	version=$(resource_version)
	claim="{devices: {requests: $(spelt "$version" "[{name: d, exactly: {deviceClassName: compute-domain-daemon.nvidia.com}}]")}}"
	# What begins with a brace has to be JSON for the kubectl of 1.32.
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

	daemon_again 1
	forms_on 1
	[[ $(k -n "$ns" get pod sly -o jsonpath='{.status.phase}') == Pending ]]
	not_refused "$mark"
}

# pod_policy Deny|Audit: whether the policy about pods denies or only takes note, once the API server acts on it.
pod_policy() {
	k patch validatingadmissionpolicybinding compute-domains-daemon-extended-resource --type=merge -p "{\"spec\": {\"validationActions\": [\"$1\"]}}" >/dev/null
	eventually 30 pod_policy_is "$1"
}
pod_policy_is() {
	local said
	said=$(tenant asks 0 "" "resources: {limits: {$implicit: 1}}" --dry-run=server 2>&1) || true
	if [[ $1 == Deny ]]; then [[ $said == *"the extended resource $implicit is for the IMEX daemons that the driver starts itself"* ]]; else [[ -z $said ]]; fi
}

# failure: a tenant's pod requests daemon-0 as an extended resource -> it is refused
# bats test_tags=matrix
@test "a tenant's pod with the extended resource of daemon-0 is refused, nor does the scheduler get it, and a domain forms there" {
	since 36 "the scheduler makes claims for extended resources from 1.36 on"
	local mark
	mark=$("$cluster/audit" mark)
	pod_policy_is Deny
	run tenant init 0 "initContainers: [{name: i, image: i, resources: {limits: {$implicit: 1}}}]" ""
	[[ $status != 0 && $output == *"the extended resource $implicit is for the IMEX daemons"* ]]
	# One that was there before the policy was.
	pod_policy Audit
	free_device 0
	tenant implicit 0 "" "resources: {limits: {$implicit: 1}}"
	eventually 60 not_scheduled implicit "the device class compute-domain-daemon.nvidia.com is for the IMEX daemons that the driver starts itself"
	pod_policy Deny
	daemon_again 0
	k -n "$ns" delete pod implicit >/dev/null
	forms_on 0
	not_refused "$mark"
}

# failure: a pod requests a channel as an extended resource -> it is refused
# bats test_tags=matrix
@test "a tenant's pod with the extended resource of a channel is refused" {
	local channel=deviceclass.resource.kubernetes.io/compute-domain-default-channel.nvidia.com
	local sentence="the extended resource $channel names no ComputeDomain; a workload gets its channel by the claim template"
	since 36 "the scheduler makes claims for extended resources from 1.36 on"
	pod_policy_is Deny
	run tenant init 0 "initContainers: [{name: i, image: i, resources: {limits: {$channel: 1}}}]" ""
	[[ $status != 0 && $output == *"$sentence"* ]]
	run tenant asks 0 "" "resources: {limits: {$channel: 1}}"
	[[ $status != 0 && $output == *"$sentence"* ]]
	# One that was there before the policy was: the scheduler's claim is refused, and the node's channel stays free.
	pod_policy Audit
	tenant implicit 0 "" "resources: {limits: {$channel: 1}}"
	eventually 60 not_scheduled implicit "the device class compute-domain-default-channel.nvidia.com gives a channel of a ComputeDomain"
	pod_policy Deny
	[[ -z $(k -n "$ns" get resourceclaims -o name) ]]
	k -n "$ns" delete pod implicit >/dev/null
	forms_on 0
}

# As when the new image cannot be pulled: the new policies are there, and the programs are still the old ones.
# failure: an upgrade is stuck -> the programs of the earlier version work with the new policies [upgrade]
@test "while an upgrade is stuck, the programs of the earlier version work with the new policies" {
	local mark
	mark=$("$cluster/audit" mark)
	"$cluster/helm" upgrade compute-domains "$checkout/deploy/chart/compute-domains" --namespace "$driver_ns" --values "$cluster/driver-values.yaml" \
		--set image.tag=v99 --set image.pullPolicy=Never --set kubeletPlugin.updateStrategy.type=OnDelete --set kubeletPlugin.updateStrategy.rollingUpdate=null >/dev/null
	eventually 60 upgrade_is_stuck
	forms_on 0
	[[ $(daemon_field 0 '.spec.containers[0].image') == *:v0.1.0 ]]
	k -n "$ns" delete pod forms-0 --wait=false >/dev/null
	k -n "$ns" delete computedomain forms-0 --timeout=60s >/dev/null
	not_refused "$mark"
}
upgrade_is_stuck() { k -n "$driver_ns" get pods -l app=compute-domain-controller -o json | jq -e 'any(.items[].status.containerStatuses[]?; .state.waiting.reason == "ErrImageNeverPull")' >/dev/null; }
