# SPDX-License-Identifier: Apache-2.0
# The CustomResourceDefinitions accept objects written for the Go driver, and have our additions.
load chart.bash

setup() {
	objects=$(to_json "$chart/crds/resource.nvidia.com_$(crd_of "$BATS_TEST_DESCRIPTION").yaml")
	[[ $objects ]]
	words+='
	def crd: if length == 1 then .[0] else error("not one document") end;
	def version: crd.spec.versions | if length == 1 then .[0] else error("not one version") end;
	def root: version.schema.openAPIV3Schema;'
}

# Each test's name begins with the kind that it checks.
crd_of() {
	local kind=${1%% *}
	echo "${kind,,}s"
}

# field PATH JSON: the schema at the path, without descriptions, is that.
field() {
	is "root$1 | del(.. | .description?) == (\$schema | fromjson)" --arg schema "$2"
}

@test "ComputeDomain is namespaced, has a status and the short names cd and cdom" {
	is 'crd | .metadata.name == "computedomains.resource.nvidia.com" and .spec.group == "resource.nvidia.com" and
		.spec.scope == "Namespaced" and .spec.names == {kind: "ComputeDomain", listKind: "ComputeDomainList",
		plural: "computedomains", singular: "computedomain", shortNames: ["cd", "cdom"]}'
	is 'version | .name == "v1beta1" and .served and .storage and .subresources == {status: {}}'
}

@test "ComputeDomain shows its state in a list" {
	is 'version.additionalPrinterColumns | map({(.name): .jsonPath}) | add == {Status: ".status.status",
		Ready: ".status.nodesReady", Wanted: ".status.nodesWanted", Cliques: ".status.cliques",
		Template: ".spec.channel.resourceClaimTemplate.name", Age: ".metadata.creationTimestamp"}'
	is 'version.additionalPrinterColumns | map(select(.priority == 1).name) == ["Template"]'
}

@test "ComputeDomain has every field of a spec" {
	is 'root | .type == "object" and .required == ["spec"]'
	is 'root.properties | keys == ["apiVersion", "kind", "metadata", "spec", "status"]'
	field .properties.spec '{"type": "object", "required": ["channel"],
		"x-kubernetes-validations": [{
			"rule": "has(self.channel) == has(oldSelf.channel) && (!has(self.channel) || self.channel == oldSelf.channel)",
			"message": "spec.channel of a ComputeDomain is immutable: delete the ComputeDomain and create it with the other value, or create another one under another name"}],
		"properties": {
			"numNodes": {"type": "integer", "minimum": 0, "default": 0},
			"channel": {"type": "object", "x-kubernetes-validations": [
				{"rule": "has(self.resourceClaimTemplate) || has(self.resourceClaim) || has(self.sharedResourceClaimTemplate)",
				"message": "spec.channel needs at least one of resourceClaimTemplate, resourceClaim and sharedResourceClaimTemplate"},
				{"rule": "!has(self.resourceClaimTemplate) || !has(self.sharedResourceClaimTemplate) || self.resourceClaimTemplate.name != self.sharedResourceClaimTemplate.name",
				"message": "resourceClaimTemplate and sharedResourceClaimTemplate need different names"},
				{"rule": "!has(self.allocationMode) || self.allocationMode != \u0027All\u0027 || (!has(self.resourceClaim) && !has(self.sharedResourceClaimTemplate))",
				"message": "a shared claim has one channel, so allocationMode must be Single"}], "properties": {
				"resourceClaimTemplate": {"type": "object", "required": ["name"], "properties": {"name": {
					"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}}},
				"resourceClaim": {"type": "object", "required": ["name"], "properties": {"name": {
					"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}}},
				"sharedResourceClaimTemplate": {"type": "object", "required": ["name"], "properties": {"name": {
					"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}}},
				"allocationMode": {"type": "string", "enum": ["All", "Single"], "default": "Single"}}}}}'
}

@test "ComputeDomain has every field of a status" {
	is 'root.properties.status | .type == "object" and .required == ["status"]'
	is 'root.properties.status.properties | keys == ["cliques", "conditions", "nodes", "nodesReady", "nodesWanted", "status"]'
	field .properties.status.properties.status '{"type": "string", "enum": ["Ready", "NotReady"], "default": "NotReady"}'
	local count
	for count in nodesReady nodesWanted cliques; do
		field .properties.status.properties.$count '{"type": "integer"}'
	done
	field .properties.status.properties.nodes '{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
		"items": {"type": "object", "required": ["cliqueID", "ipAddress", "name"], "properties": {
			"name": {"type": "string", "maxLength": 253}, "ipAddress": {"type": "string", "maxLength": 64},
			"cliqueID": {"type": "string", "maxLength": 64}, "index": {"type": "integer"},
			"status": {"type": "string", "enum": ["Ready", "NotReady"], "default": "NotReady"}}}}'
}

@test "ComputeDomain has conditions of the standard form" {
	is 'root.properties.status.properties.conditions | .type == "array" and .["x-kubernetes-list-type"] == "map" and
		.["x-kubernetes-list-map-keys"] == ["type"]'
	is 'root.properties.status.properties.conditions.items |
		.required == ["lastTransitionTime", "message", "reason", "status", "type"] and
		(.properties | keys == ["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"]) and
		.properties.status.enum == ["True", "False", "Unknown"] and .properties.lastTransitionTime.format == "date-time"'
}

@test "ComputeDomainClique has every field" {
	is 'crd | .metadata.name == "computedomaincliques.resource.nvidia.com" and .spec.group == "resource.nvidia.com" and
		.spec.scope == "Namespaced" and .spec.names == {kind: "ComputeDomainClique", listKind: "ComputeDomainCliqueList",
		plural: "computedomaincliques", singular: "computedomainclique"}'
	is 'version | .name == "v1beta1" and .served and .storage and (has("subresources") | not)'
	is 'root | .type == "object" and (has("required") | not) and (.properties | keys == ["apiVersion", "daemons", "kind", "metadata"])'
	field .properties.daemons '{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["nodeName"],
		"items": {"type": "object", "required": ["cliqueID", "ipAddress", "nodeName"], "properties": {
			"nodeName": {"type": "string", "maxLength": 253}, "ipAddress": {"type": "string", "maxLength": 64},
			"cliqueID": {"type": "string", "maxLength": 64}, "index": {"type": "integer"},
			"status": {"type": "string", "enum": ["Ready", "NotReady"], "default": "NotReady"}}}}'
}

@test "ComputeDomainFabric is of the cluster, has no status and the short name cdf" {
	is 'crd | .metadata.name == "computedomainfabrics.resource.nvidia.com" and .spec.group == "resource.nvidia.com" and
		.spec.scope == "Cluster" and .spec.names == {kind: "ComputeDomainFabric", listKind: "ComputeDomainFabricList",
		plural: "computedomainfabrics", singular: "computedomainfabric", shortNames: ["cdf"]}'
	is 'version | .name == "v1beta1" and .served and .storage and (has("subresources") | not)'
	is 'version.additionalPrinterColumns | map({(.name): .jsonPath}) | add == {Rack: ".rack", Nodes: ".nodes",
		Domains: ".domainCount", Channels: ".channelsInUse", Age: ".metadata.creationTimestamp"}'
}

@test "ComputeDomainFabric has every field" {
	is 'root.properties | keys == ["apiVersion", "channelCount", "channels", "channelsInUse", "conditions", "domainCount",
		"domains", "epoch", "imexVersion", "kind", "members", "metadata", "next", "nodes", "rack", "recount", "removals", "tableOf"]'
	field .properties.channels '{"type": "array", "items": {"type": "object", "required": ["id", "owner"], "properties": {
		"id": {"type": "integer", "minimum": 0, "maximum": 1048575},
		"owner": {"type": "object", "required": ["uid"], "properties": {
			"kind": {"type": "string", "maxLength": 63}, "namespace": {"type": "string", "maxLength": 63},
			"name": {"type": "string", "maxLength": 253}, "uid": {"type": "string", "maxLength": 64}}},
		"releasing": {"type": "string", "format": "date-time"}}}}'
	is 'root.properties.domains.items.properties | keys == ["assignments", "freed", "infix", "owner", "port", "slots"] and
		(.assignments.items.properties | keys == ["bootID", "claimUID", "epoch", "index", "ip", "node", "state"])'
	field .properties.domains.items.properties.assignments.items.properties.state '{"type": "string", "enum": ["Reserved", "Leaving", "Ending"]}'
	field .properties.removals '{"type": "array", "items": {"type": "object", "required": ["node", "podUID"], "properties": {
		"node": {"type": "string", "maxLength": 253}, "podUID": {"type": "string", "maxLength": 64}}}}'
	field .properties.recount '{"type": "integer", "minimum": 0}'
}

@test "ComputeDomainFabric explains each of its fields to people" {
	is '[root.properties | del(.metadata) | .. | objects | select(has("type") and (.type | type == "string"))
		| select(has("description") | not)] == []'
}

@test "ComputeDomain explains each of its fields to people" {
	is '[root.properties | del(.metadata) | .. | objects | select(has("type") and (.type | type == "string"))
		| select(has("description") | not)] == []'
}

@test "ComputeDomainClique explains each of its fields to people" {
	is '[root.properties | del(.metadata) | .. | objects | select(has("type") and (.type | type == "string"))
		| select(has("description") | not)] == []'
}

# Without a limit, a client that may write the object could fill the memory of all programs that read it.
bounded() {
	is '[root.properties | del(.metadata) | .. | objects | select(.type? == "string")
		| select((has("maxLength") or has("enum") or has("format")) | not)] == []'
}

# failure: a string of an object is very long -> the API server refuses it [tenants]
@test "ComputeDomain limits the length of every string" { bounded; }

@test "ComputeDomainClique limits the length of every string" { bounded; }

@test "ComputeDomainFabric limits the length of every string" { bounded; }
