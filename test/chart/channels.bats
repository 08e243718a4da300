# SPDX-License-Identifier: Apache-2.0
# imex.isolation=channel: what the kubelet plugin gets for it, and nothing of it without.
load chart.bash

channel=(--set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.isolation=channel)
elsewhere=(--set nvidiaDriverRoot=/run/nvidia/driver)

@test "without channels of their own nothing of the plugin knows of them" {
	render --set featureGates.HostManagedIMEX=true "${elsewhere[@]}" --set resources.computeDomains.imex.trustContainerToolkit=true
	is '[plugin | env("HOST_ROOT"), env("TRUST_CONTAINER_TOOLKIT")] == []'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods") | tostring | contains("host-channels") | not'
}

@test "the plugin may read fabrics, tell what its node holds, and no more" {
	render "${channel[@]}"
	is '[controller, plugin] | all(env("IMEX_ISOLATION") == "channel")'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] | select(.resources == ["computedomainfabrics"]) |
		.verbs == ["get", "list", "watch"]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods") | tostring | contains("host-channels")'
	is 'named("Role"; "compute-domains-role-kubeletplugin").rules == [{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch", "patch"]}]'
}

@test "it looks for the container toolkit in the driver root, and on the host where that is elsewhere" {
	render "${channel[@]}"
	is '[plugin | env("HOST_ROOT"), env("TRUST_CONTAINER_TOOLKIT")] == []'
	render "${channel[@]}" "${elsewhere[@]}"
	is 'plugin | env("HOST_ROOT") == "/host-root"'
	is 'plugin.spec | (.volumes[] | select(.name == "host-root") | .hostPath.path == "/") and
		(.containers[0].volumeMounts[] | select(.name == "host-root") | .mountPath == "/host-root" and .readOnly)'
	render "${channel[@]}" --set resources.computeDomains.imex.trustContainerToolkit=true
	is 'plugin | env("TRUST_CONTAINER_TOOLKIT") == "true"'
}

# failure: another owner has the CustomResourceDefinition of ComputeDomains -> the list of channels is in a
#   kind of ours
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

@test "nobody but the controller writes a fabric" {
	render "${channel[@]}"
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-fabrics") | .spec.failurePolicy == "Fail" and
		.spec.matchConstraints.resourceRules[0].operations == ["CREATE", "UPDATE"] and (.spec | has("matchConditions") | not) and
		(.spec.validations[0].expression | contains("service-account-controller"))'
	is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-fabrics").spec.validationActions == ["Deny"]'
}

@test "where the driver runs one IMEX domain for all, plugins report what their nodes hold and nothing of a host, and the controller reads it" {
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
