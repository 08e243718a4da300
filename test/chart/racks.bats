# SPDX-License-Identifier: Apache-2.0
# rackDomains: off by default, and with only the permissions that it needs.
load chart.bash

@test "without rackDomains the programs get no settings and no permissions for racks" {
	render
	is '[controller, plugin] | map([env("RACK_DOMAINS")]) == [[], []]'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | all(.resources != ["namespaces"]) and
		all(.resources != ["computedomains"] or (.verbs | any(. == "create" or . == "delete") | not))'
	is 'kind("ValidatingAdmissionPolicy") | all(.metadata.name | endswith("-controller-domains") | not)'
}

@test "with rackDomains both programs get the setting, and the controller may create only ComputeDomains of racks" {
	render --set resources.computeDomains.rackDomains.enabled=true
	is '[controller, plugin] | all(env("RACK_DOMAINS") == "true")'
	is '[plugin | env("RACK_NAME_FROM_NODE_LABEL")] == []'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules |
		any(.resources == ["computedomains"] and .verbs == ["create", "delete"]) and
		any(.resources == ["namespaces"] and .verbs == ["list", "watch"])'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] | select(.resources == ["nodes"]) | .verbs == ["get", "list", "watch"]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-controller-domains").spec.matchConstraints.resourceRules[0].operations == ["CREATE", "UPDATE", "DELETE"]'
}

@test "the label that names racks reaches the plugin, which may watch its node for it" {
	render --set resources.computeDomains.rackDomains.enabled=true \
		--set resources.computeDomains.rackDomains.nameFromNodeLabel=ds.coreweave.com/nvlink.domain
	is 'plugin | env("RACK_NAME_FROM_NODE_LABEL") == "ds.coreweave.com/nvlink.domain"'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] | select(.resources == ["nodes"]) |
		.verbs == ["get", "list", "watch"]'
}

@test "a label without rackDomains, and an invalid label, are refused" {
	refused 'rackDomains.enabled=true' --set resources.computeDomains.rackDomains.nameFromNodeLabel=a/b
	refused 'nameFromNodeLabel' --set resources.computeDomains.rackDomains.enabled=true \
		--set 'resources.computeDomains.rackDomains.nameFromNodeLabel=a b'
}
