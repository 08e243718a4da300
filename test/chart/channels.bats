# SPDX-License-Identifier: Apache-2.0
# imex.isolation=channel: what the kubelet plugin gets for it, and does not get otherwise.
load chart.bash

channel=(--set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.isolation=channel)
elsewhere=(--set nvidiaDriverRoot=/run/nvidia/driver)

@test "without isolation by channel the plugin gets nothing for it" {
	render --set featureGates.HostManagedIMEX=true "${elsewhere[@]}" --set resources.computeDomains.imex.trustContainerToolkit=true
	is '[plugin | env("HOST_ROOT"), env("TRUST_CONTAINER_TOOLKIT")] == []'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods") | tostring | contains("host-channels") | not'
}

@test "the plugin may read fabric objects, report what its node holds, and nothing else" {
	render "${channel[@]}"
	is '[controller, plugin] | all(env("IMEX_ISOLATION") == "channel")'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] | select(.resources == ["computedomainfabrics"]) |
		.verbs == ["get", "list", "watch"]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods") | tostring | contains("host-channels")'
	is 'named("Role"; "compute-domains-role-kubeletplugin").rules == [{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch", "patch"]}]'
}

@test "the plugin searches the container toolkit in the driver root, and on the host if that is another folder" {
	render "${channel[@]}"
	is '[plugin | env("HOST_ROOT"), env("TRUST_CONTAINER_TOOLKIT")] == []'
	render "${channel[@]}" "${elsewhere[@]}"
	is 'plugin | env("HOST_ROOT") == "/host-root"'
	is 'plugin.spec | (.volumes[] | select(.name == "host-root") | .hostPath.path == "/") and
		(.containers[0].volumeMounts[] | select(.name == "host-root") | .mountPath == "/host-root" and .readOnly)'
	render "${channel[@]}" --set resources.computeDomains.imex.trustContainerToolkit=true
	is 'plugin | env("TRUST_CONTAINER_TOOLKIT") == "true"'
}

# failure: another owner has the CustomResourceDefinition of ComputeDomains -> the list of channels is in our
#   own kind
@test "the controller writes fabric objects, creates their definition even if another owner has the others, and lists the Leases of kubelets" {
	render "${channel[@]}" --set crds.applyAtStart=false
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | (.[] | select(.resources == ["computedomainfabrics"]) |
		.verbs == ["get", "list", "watch", "create", "patch", "delete"]) and (.[] | select(.resources == ["customresourcedefinitions"]) |
		.resourceNames == ["computedomainfabrics.resource.nvidia.com"])'
	is 'named("Role"; "compute-domains-role-controller-leases") | .metadata.namespace == "kube-node-lease" and
		.rules == [{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["list"]}]'
	is 'named("RoleBinding"; "compute-domains-role-binding-controller-leases") | .metadata.namespace == "kube-node-lease" and
		.subjects[0].name == "compute-domains-service-account-controller"'
	render "${channel[@]}"
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules[] | select(.resources == ["customresourcedefinitions"]) |
		.resourceNames | length == 3'
}

@test "only the controller writes a fabric object" {
	render "${channel[@]}"
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-fabrics") | .spec.failurePolicy == "Fail" and
		.spec.matchConstraints.resourceRules[0].operations == ["CREATE", "UPDATE"] and (.spec | has("matchConditions") | not) and
		(.spec.validations[0].expression | contains("service-account-controller"))'
	is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-fabrics").spec.validationActions == ["Deny"]'
}

@test "with driver-managed channels, plugins report what their nodes hold and no host's IMEX, and the controller reads it" {
	render --set resources.computeDomains.imex.isolation=channel --set crds.applyAtStart=false
	is '[controller, plugin] | all(env("IMEX_ISOLATION") == "channel" and env("IMEX_MODE") == "driverManaged")'
	is 'controller | env("KUBELET_PLUGIN_SELECTOR") | length > 0'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods") | tostring | contains("host-channels") and (contains("host-state") | not)'
	is 'named("Role"; "compute-domains-role-kubeletplugin").rules == [{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch", "patch"]}]'
	is 'named("Role"; "compute-domains-role-controller-leases") | .metadata.namespace == "kube-node-lease"'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules[] | select(.resources == ["customresourcedefinitions"]) |
		.resourceNames == ["computedomainfabrics.resource.nvidia.com"]'
	is 'map(select(.kind == "DeviceClass") | .metadata.name) | index("compute-domain-daemon.nvidia.com") != null'
}

# failure: a compromised controller writes claims or slices of others -> policies refuse it
@test "the controller writes shared claims and the slice of their device, and no other claim or slice" {
	render "${channel[@]}"
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | any(.resources == ["resourceclaims", "resourceslices"] and
		.verbs == ["create", "delete"]) and any(.resources == ["resourceclaims", "resourceclaims/status", "resourceclaims/binding"] and
		.verbs == ["patch"]) and any(.resources == ["podgroups"] and .verbs == ["list", "watch"])'
	local policy
	for policy in sharedclaims resourceslices; do
		is "named(\"ValidatingAdmissionPolicy\"; \"compute-domains-controller-$policy\").spec"' | .failurePolicy == "Fail" and
			(.matchConstraints.resourceRules[0].operations == ["CREATE", "UPDATE", "DELETE"]) and
			(.matchConditions[0].expression | contains("service-account-controller"))'
		is "named(\"ValidatingAdmissionPolicyBinding\"; \"compute-domains-controller-$policy\").spec.validationActions == [\"Deny\"]"
	done
	is 'named("DeviceClass"; "compute-domain-shared-channel.nvidia.com").spec.selectors[0].cel.expression |
		contains("type == \u0027shared-channel\u0027")'
	# The programs use the same names.
	local name
	for name in compute-domain-shared-channel.nvidia.com shared/channel compute-domain.nvidia.com-shared; do
		grep -qF "\"$name\"" "$checkout/src/api/names.h"
		is 'tostring | contains($n)' --arg n "$name"
	done
}

# failure: a kubelet's certificate is stolen -> in every mode, it does not take the name of the slice of shared claims [tenants]
@test "in every mode, only the controller writes the slice of shared claims" {
	local mode
	for mode in "" resources.computeDomains.imex.isolation=channel featureGates.HostManagedIMEX=true; do
		render --set "$mode"
		is 'named("ValidatingAdmissionPolicy"; "compute-domains-shared-slice").spec | .failurePolicy == "Fail" and
			.matchConstraints.resourceRules == [{apiGroups: ["resource.k8s.io"], apiVersions: ["v1", "v1beta2", "v1beta1"],
				operations: ["CREATE", "UPDATE"], resources: ["resourceslices"]}] and
			[.matchConditions[].expression] == ["object.metadata.?name.orValue(\u0027\u0027) == \u0027compute-domain.nvidia.com-shared\u0027"] and
			(.validations[].expression | contains("== \u0027system:serviceaccount:nvidia-compute-domains:compute-domains-service-account-controller\u0027"))'
		is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-shared-slice").spec.validationActions == ["Deny"]'
	done
}

# failure: the slice of shared claims is deleted in the foreground, or its stored version is migrated -> the policy
#   admits it
@test "the slice of shared claims has the same exception for finalizers and unchanged writes as fabric objects" {
	render
	is 'def rule($p): named("ValidatingAdmissionPolicy"; "compute-domains-\($p)").spec.validations | map(.expression);
		rule("shared-slice") == rule("fabrics") and (rule("shared-slice")[0] | contains("request.operation == \u0027UPDATE\u0027") and
		(["generation", "labels", "annotations", "ownerReferences"] as $fields |
			all($fields[] as $f | contains("object.metadata.?\($f) == oldObject.metadata.?\($f)"); .)))'
}

# failure: imex.isolation changes to domain -> a ComputeDomain with a shared claim can be deleted [upgrade]
@test "without channels, the controller deletes and releases the claims of ComputeDomains, and creates and allocates none" {
	local mode
	for mode in "" featureGates.HostManagedIMEX=true; do
		render --set "$mode"
		is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | any(.resources == ["resourceclaims"] and
			.verbs == ["delete", "patch"]) and ([.[] | select(.verbs - ["get", "list", "watch"] != []).resources[]] |
			(index("resourceslices") or index("resourceclaims/status") or index("resourceclaims/binding")) | not) and
			([.[].resources[]] | index("podgroups") | not)'
		is 'named("ValidatingAdmissionPolicy"; "compute-domains-controller-sharedclaims").spec | .failurePolicy == "Fail" and
			.matchConstraints.resourceRules[0].operations == ["CREATE", "UPDATE", "DELETE"] and
			(.matchConditions[0].expression | contains("service-account-controller")) and
			(.validations[0].expression | contains("DELETE") and (contains("CREATE") or contains("changesStatus") | not))'
		is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-controller-sharedclaims").spec.validationActions == ["Deny"]'
		is '[kind("DeviceClass")[].metadata.name] | index("compute-domain-shared-channel.nvidia.com") | not'
		is 'kind("ValidatingAdmissionPolicy") | map(.metadata.name) | index("compute-domains-controller-resourceslices") | not'
	done
}
