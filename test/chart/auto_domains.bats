# SPDX-License-Identifier: Apache-2.0
# autoDomains: off by default, and with only the permissions that it needs.
load chart.bash

channels=(--set resources.computeDomains.imex.isolation=channel)
on=("${channels[@]}" --set resources.computeDomains.autoDomains.enabled=true)

# failure: the controller may read all pods -> only with autoDomains.enabled, together with a policy for its
#   ComputeDomains [upgrade]
@test "without autoDomains there is no policy for pods, and the controller may neither watch pods nor create ComputeDomains" {
	render "${channels[@]}"
	is '[controller | env("AUTO_DOMAINS")] == [] and kind("MutatingAdmissionPolicy"; "MutatingAdmissionPolicyBinding") == []'
	is 'kind("ValidatingAdmissionPolicy") | all(.metadata.name | endswith("-domains") | not)'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | all(.resources != ["pods"]) and
		all(.resources != ["computedomains"] or (.verbs | index("create") | not))'
}

@test "with autoDomains the controller may watch pods and create ComputeDomains, which a policy restricts" {
	render "${on[@]}"
	is 'controller | env("AUTO_DOMAINS") == "true"'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules |
		map(select(.resources == ["pods"]).verbs) == [["list", "watch"]] and
		(map(select(.resources == ["computedomains"]).verbs[]) | index("create") and (index("delete") | not)) and
		all(.resources != ["namespaces"])'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-controller-domains").spec | .failurePolicy == "Fail" and
		(.variables[] | select(.name == "isOfRack").expression) == "false" and (.validations | length == 3)'
	is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-controller-domains").spec.validationActions == ["Deny"]'
}

@test "the policies change only pods with the label or the annotation, and check only pods with the label" {
	render "${on[@]}"
	is 'named("MutatingAdmissionPolicy"; "compute-domains-auto-domains").spec | .failurePolicy == "Fail" and
		(.matchConditions | map(.name)) == ["has-label-or-annotation", "has-no-such-claim"] and
		.matchConstraints.resourceRules == [{apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"]}]'
	# `kubectl compute-domains why` knows the claim by the name of its entry.
	is 'named("MutatingAdmissionPolicy"; "compute-domains-auto-domains").spec | ([.matchConditions[].expression] | add) + .mutations[0].applyConfiguration.expression |
		[scan("name(?: ==|:) .([a-z-]+).") | .[0]] | unique == [$entry]' --arg entry "$(sed -n 's/^#define AUTO_DOMAIN_ENTRY "\(.*\)"$/\1/p' "$checkout/src/model/auto_domain.h")"
	is 'named("MutatingAdmissionPolicyBinding"; "compute-domains-auto-domains").spec.policyName == "compute-domains-auto-domains"'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-auto-domains").spec.matchConstraints.objectSelector.matchExpressions ==
		[{key: "resource.nvidia.com/auto-domain", operator: "Exists"}]'
}

@test "with racks and autoDomains, one policy restricts the controller to both kinds of ComputeDomains" {
	render "${on[@]}" --set resources.computeDomains.rackDomains.enabled=true
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-controller-domains").spec | (.validations | length == 4) and
		(.variables | map(select(.expression == "false")) == [])'
}

@test "autoDomains with isolation by domain, or an older Kubernetes, are refused" {
	refused 'requires imex.isolation=channel' --set resources.computeDomains.autoDomains.enabled=true
	refused 'requires Kubernetes 1.36 or newer' "${on[@]}" --kube-version 1.35.4
	render "${on[@]}" --kube-version 1.36.0
	render --set resources.computeDomains.autoDomains.enabled=true --set resources.computeDomains.enabled=false \
		--set resources.gpus.enabled=true,gpuResourcesEnabledOverride=true
	is 'kind("MutatingAdmissionPolicy") == []'
}
