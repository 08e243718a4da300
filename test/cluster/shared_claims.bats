#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pods on several nodes share one claim (imex.isolation=channel). The hosts run IMEX. All nodes are in one partition.

load driver
load channels

setup_file() { channels_begin; }
teardown_file() { channels_end; }
setup() { ns_begin; }
teardown() { ns_end; }

# sharing NAME: a ComputeDomain with the shared claim NAME.
sharing() {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: $1}
spec: {numNodes: 0, channel: {resourceClaim: {name: $1}}}
END
	eventually 30 condition_is "$1" SharedClaimAvailable True
}
# with_claim POD CLAIM NODE [MEMBER]: a pod with this member of its spec.
with_claim() { claims_pod "$1" "nodeSelector: {kubernetes.io/hostname: node-$3}${4:+$'\n'  $4}" channel="$2"; }

claim() { k -n "$ns" get resourceclaim "$1" -o json | jq -er "${@:2}"; }
# claim_is NAME EXPRESSION
claim_is() { claim "$1" "$2" >/dev/null; }
# group_version: the version of the API of PodGroups; fails if the API server serves none.
group_version() {
	k get --raw /apis/scheduling.k8s.io | jq -er '[.versions[].groupVersion] | map(select(. == "scheduling.k8s.io/v1beta1" or . == "scheduling.k8s.io/v1alpha2"))[0]'
}

# failure: pods start together and compete for an unallocated claim -> the controller allocates it in advance, and it stays allocated
@test "the controller allocates a shared claim before a pod uses it" {
	sharing left
	eventually 30 claim_is left '.status.allocation.devices.results[0] | .device == "channel-shared" and .shareID != null'
	claim_is left '.status.allocation.allocationTimestamp != null and (.status.reservedFor // []) == []'
	with_claim l0 left 0
	running l0
	local allocated
	allocated=$(claim left .status.allocation.allocationTimestamp)
	k -n "$ns" delete pod l0 >/dev/null
	eventually 60 claim_is left '(.status.reservedFor // []) == []'
	[[ $(claim left .status.allocation.allocationTimestamp) == "$allocated" ]]
	k -n "$ns" delete computedomain left --wait=false >/dev/null
	k -n "$ns" wait --for=delete resourceclaim/left --timeout=60s >/dev/null
}

# failure: the pods of a PodGroup start together -> the controller has reserved the claim for the group, and no bind fails
@test "the controller reserves a shared claim for a PodGroup that names it" {
	local version
	version=$(group_version) || skip "the API server serves no PodGroups"
	sharing left
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: $version
kind: PodGroup
metadata: {name: group}
spec:
  schedulingPolicy: {gang: {minCount: 3}}
  resourceClaims: [{name: channel, resourceClaimName: left}]
END
	k -n "$ns" get podgroup group -o json | jq -e .spec.resourceClaims >/dev/null || skip "DRAWorkloadResourceClaims is off"
	eventually 10 claim_is left '.status.reservedFor | length == 1 and .[0].resource == "podgroups" and .[0].name == "group"'
	local k
	for k in 0 1 2; do
		with_claim "g$k" left "$k" 'schedulingGroup: {podGroupName: group}'
	done
	for k in 0 1 2; do running "g$k"; done
	[[ $(channels_of g0) == "$(channels_of g1)" && $(channels_of g0) == "$(channels_of g2)" ]]
	claim_is left '.status.reservedFor | length == 1'
	! k -n "$ns" get events -o json | jq -e '.items[] | select(.message | test("allocated elsewhere|Duplicate value"))' || false
	k -n "$ns" delete pods --all >/dev/null
	k -n "$ns" delete podgroup group >/dev/null
	eventually 60 claim_is left '(.status.reservedFor // []) == [] and .status.allocation != null'
}

# failure: pods of several nodes name one claim -> each gets the channel of the ComputeDomain
@test "pods on three nodes, two of them on one node, share one claim and one channel" {
	sharing left
	sharing right
	with_claim l0 left 0
	with_claim l0b left 0
	with_claim l1 left 1
	with_claim l2 left 2
	with_claim r0 right 0
	local pod left right
	for pod in l0 l0b l1 l2 r0; do running "$pod"; done
	left=$(channels_of l0)
	right=$(channels_of r0)
	[[ $left =~ ^[0-9]+$ && $right =~ ^[0-9]+$ && $left != "$right" && $left != 0 && $right != 0 ]]
	for pod in l0b l1 l2; do [[ $(channels_of "$pod") == "$left" ]]; done
	[[ $(k -n "$ns" get resourceclaims -o name | wc -l) == 2 ]]
	[[ $(k get nodes -l resource.nvidia.com/shared-channel=true -o name | wc -l) == 4 ]]
	# The last pod on a node ends, and another one comes.
	k -n "$ns" delete pod l1 >/dev/null
	eventually 30 holds_are 1 ''
	with_claim l1 left 1
	running l1
	[[ $(channels_of l1) == "$left" ]]
	k -n "$ns" delete computedomain left --wait=false >/dev/null
	k -n "$ns" delete pods --all >/dev/null
	eventually 30 holds_are 0 ''
	k -n "$ns" wait --for=delete resourceclaim/left --timeout=60s >/dev/null
}

# failure: a claim of another namespace has the configuration of a ComputeDomain -> it is refused [tenants]
@test "a copy of a shared claim in another namespace gets no channel" {
	sharing left
	k create namespace "$ns-thief" >/dev/null
	has_account "$ns-thief"
	k -n "$ns" get resourceclaim left -o json | jq --arg ns "$ns-thief" '{apiVersion, kind, spec, metadata: {name: "left", namespace: $ns}}' |
		k create -f - >/dev/null
	ns=$ns-thief with_claim thief left 0
	eventually 60 event_in "$ns-thief" 'the driver did not create this claim'
	k delete namespace "$ns-thief" >/dev/null
}
event_in() { k -n "$1" get events -o json | jq -r '.items[].message' | grep -qF "$2"; }

# failure: the ResourceSlice of the shared device is deleted -> the controller creates it again
@test "deleting the shared slice lets the controller publish it again" {
	sharing left
	k delete resourceslice compute-domain.nvidia.com-shared >/dev/null
	slice_there() { k get resourceslice compute-domain.nvidia.com-shared >/dev/null 2>&1; }
	eventually 30 slice_there
	with_claim l0 left 0
	running l0
}

# as_controller ARGUMENTS...: patches a claim as the controller's account.
as_controller() { k --as="system:serviceaccount:$driver_ns:$account" -n "$ns" patch resourceclaim --type merge "$@"; }
# policy_denies WORDS ARGUMENTS...
policy_denies() {
	local words=$1
	run as_controller "${@:2}"
	[[ $status != 0 && $output == *"$words"* ]] || { echo "$output"; return 1; }
}

# failure: a compromised controller takes a claim from its pods, or changes claims of others -> a policy refuses it
@test "the controller's account may allocate and reserve shared claims, and change nothing else of a claim" {
	local account
	account=$(k -n "$driver_ns" get deployment compute-domains-controller -o jsonpath='{.spec.template.spec.serviceAccountName}')
	# The account has all rights, so only the policy can deny something. kubectl also reads what it patches.
	k create clusterrolebinding "$ns" --clusterrole=cluster-admin --serviceaccount="$driver_ns:$account" >/dev/null
	sharing left
	eventually 30 claim_is left '.status.allocation != null'
	with_claim l0 left 0
	running l0
	policy_denies "change no others" left --subresource=status -p '{"status": {"reservedFor": null}}'
	policy_denies "the controller may" left --subresource=status -p '{"status": {"reservedFor": null, "allocation": null}}'
	policy_denies "change no others" left --subresource=status \
		-p "$(claim left '{status: {reservedFor: (.status.reservedFor + [{resource: "pods", name: "other", uid: "other"}])}}' -c)"
	policy_denies "change nothing else" left -p '{"metadata": {"labels": {"mine": "yes"}}}'
	# A dry run: without the PodGroup API nobody would remove this reservation.
	as_controller left --subresource=status --dry-run=server \
		-p "$(claim left '{status: {reservedFor: (.status.reservedFor + [{apiGroup: "scheduling.k8s.io", resource: "podgroups", name: "other", uid: "other"}])}}' -c)"
	k -n "$ns" create -f - >/dev/null <<END
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: other}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
END
	policy_denies "shared channel device only" other -p '{"metadata": {"finalizers": null, "labels": {"mine": "yes"}}}'
	k delete clusterrolebinding "$ns" >/dev/null
}
