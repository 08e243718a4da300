#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Wrong input is rejected at once, with a message for the person who can fix it, and it changes nothing.

load driver

setup_file() { with_driver 4; }
setup() { ns_begin; }
teardown() { ns_end; }

# failure: a claim has an unknown field -> an Event of its pod names it within 45 s
# bats test_tags=matrix
@test "unknown field in an opaque config" {
	domain d
	claimed_by_hand bad "$(config "$(domain_uid d)" ComputeDomainChannelConfig ', unexpected: 1')"
	refused_with bad 'strict decoding error: unknown field "unexpected"'
}

# failure: a claim has the configuration of another kind -> it is refused
# bats test_tags=long
@test "wrong kind of opaque config" {
	run claimed_by_hand bad "$(config "e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8" ComputeDomainDaemonConfig)"
	[[ $output == *"ComputeDomainDaemonConfig is for the IMEX daemons"* ]]
	k -n "$ns" delete pod bad --wait=true # the pod has no claim template
	daemon_policy Audit
	claimed_by_hand bad "$(config "e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8" ComputeDomainDaemonConfig)"
	refused_with bad "the configuration is for a daemon"
	daemon_policy Deny
	k -n "$ns" delete pod bad --wait=true
	claimed_by_hand worse "$(config "e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8" GpuConfig)"
	refused_with worse GpuConfig
}

# failure: domainID is empty -> the claim is refused
@test "empty domainID" {
	claimed_by_hand bad "$(config "")"
	refused_with bad domainID
}

# failure: domainID is a path outside of its folder -> the claim is refused, and no file changes
# bats test_tags=long
@test "a domainID that is a path outside of its folder" {
	# The folders that this path would name, from the folder of the ComputeDomains, and those on the way.
	around() { "$cluster/node" 0 sh -c 'ls -A -I "compute-domains-test*" /var/lib; ls -A /var/lib/kubelet /var/lib/kubelet/plugins; find "$1" /var/run/cdi | sort' sh "$plugin_dir"; }
	local before
	before=$(around)
	claimed_by_hand bad "$(config "../../../../etc")"
	refused_with bad domainID
	[[ $(around) == "$before" ]]
}

# failure: allocationMode is unknown -> the claim is refused
@test "unknown allocationMode" {
	domain d
	claimed_by_hand bad "$(config "$(domain_uid d)" ComputeDomainChannelConfig ', allocationMode: Some')"
	refused_with bad allocationMode
}

# failure: a claim names a ComputeDomain of another namespace -> it is refused, and no node is labelled
@test "a ComputeDomain of another namespace" {
	k create namespace "$ns-other"
	k -n "$ns-other" apply -f - <<END
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: theirs}
spec: {channel: {resourceClaimTemplate: {name: theirs}}}
END
	claimed_by_hand thief "$(config "$(k -n "$ns-other" get computedomain theirs -o jsonpath='{.metadata.uid}')")"
	refused_with thief namespace
	# It got no label either.
	labels_gone
	k -n "$ns-other" delete computedomain theirs --timeout=60s
	k delete namespace "$ns-other" --wait=false
}

@test "a claim for a ComputeDomain that does not exist" {
	claimed_by_hand orphan "$(config "e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8")"
	refused_with orphan e6d3a22d-12a8-47f7-b55b-fdcbcf4e35d8
}

# failure: the name of the claim template is already in use -> an Event reports it, and the other template stays
@test "claim template name already taken by another object" {
	k -n "$ns" apply -f - >/dev/null <<END
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: taken}
spec: {spec: {devices: {requests: [{name: x, exactly: {deviceClassName: gpu.example.com}}]}}}
END
	domain taken
	eventually 20 event_contains ComputeDomain/taken taken
	eventually 10 condition_is taken Ready False
	[[ $(k -n "$ns" get resourceclaimtemplate taken -o jsonpath='{.metadata.labels}{.metadata.finalizers}') == "" ]]
	# The controller creates the template when the name is free again.
	k -n "$ns" delete resourceclaimtemplate taken
	eventually 30 k -n "$ns" get resourceclaimtemplate taken
}

@test "the API server rejects a ComputeDomain without spec, with an unknown mode, and a changed channel" {
	local x='"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": "x"}'
	run k -n "$ns" create -f - <<<"{$x}"
	[[ $status -ne 0 && $output == *"spec: Required"* ]]
	run k -n "$ns" create -f - <<<"{$x, \"spec\": {\"channel\": {\"allocationMode\": \"Most\", \"resourceClaimTemplate\": {\"name\": \"x\"}}}}"
	[[ $status -ne 0 && $output == *'spec.channel.allocationMode: Unsupported value: "Most"'* ]]
	domain fixed
	run k -n "$ns" patch computedomain fixed --type=merge -p '{"spec":{"channel":{"allocationMode":"All"}}}'
	[[ $status -ne 0 && $output == *immutable* ]]
}

# failure: a user creates a daemon claim -> it is refused
@test "a daemon claim created by hand in a user's namespace" {
	domain d
	run claimed_by_hand sneaky "$(config "$(domain_uid d)" ComputeDomainDaemonConfig)" compute-domain-daemon.nvidia.com
	[[ $output == *"is for the IMEX daemons"* ]]
	k -n "$ns" delete pod sneaky --wait=true
}

# The API server accepts what Go accepts, and returns the bytes unchanged.
# failure: a tenant's claim has parameters that only Go accepts -> pods of others get their channels
# bats test_tags=long
@test "parameters of a claim that are not valid JSON by RFC 8259" {
	local text
	for text in '\ud800' $'\xff'; do
		k create --raw "/apis/resource.k8s.io/v1/namespaces/$ns/resourceclaims" -f - >/dev/null <<-JSON
			{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"generateName": "claim-"}, "spec": {"devices": {"requests": [
			{"name": "x", "exactly": {"deviceClassName": "gpu.example.com"}}], "config": [{"opaque": {"driver": "example.com", "parameters": {"a": "$text"}}}]}}}
		JSON
	done
	k get --raw "/apis/resource.k8s.io/v1/namespaces/$ns/resourceclaims" | grep -qF '\ud800'
	domain seen
	worker seen-by-watch seen 0
	running seen-by-watch
	controllers_restart
	worker seen-by-list seen 1
	running seen-by-list
}
