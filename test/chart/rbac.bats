# What each program may do, which is what someone may do who got hold of it.
load chart.bash

setup() { render; }

@test "no role has a wildcard" {
	is '[kind("Role"; "ClusterRole")[].rules[] | .apiGroups[], .resources[], .verbs[] | select(contains("*"))] == []'
}

@test "each program has an account of its own" {
	is '[controller.spec.serviceAccountName, plugin.spec.serviceAccountName] ==
		["compute-domains-service-account-controller", "compute-domains-service-account-kubeletplugin"]'
	is '[kind("ServiceAccount")[].metadata.name] | sort == ["compute-domain-daemon-service-account",
		"compute-domains-service-account-controller", "compute-domains-service-account-kubeletplugin"]'
}

@test "a kubelet plugin writes slices and events, and reads no pods" {
	is '[named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] |
		select(.verbs - ["get", "list", "watch"] != []) | .resources[]] == ["resourceslices", "events"]'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules |
		all(.resources != ["pods"]) and (.[] | select(.resources == ["nodes"]) | .verbs == ["get"])'
	is 'kind("RoleBinding") | all(.subjects[0].name | endswith("kubeletplugin") | not)'
}

@test "a daemon reads cliques and patches pods, in the driver's namespace" {
	is 'named("Role"; "compute-domain-daemon-role") | .metadata.namespace == "nvidia-compute-domains" and .rules == [
		{apiGroups: ["resource.nvidia.com"], resources: ["computedomaincliques"], verbs: ["get", "list", "watch"]},
		{apiGroups: [""], resources: ["pods"], verbs: ["get", "patch"]}]'
	is 'kind("ClusterRoleBinding") | all(.subjects[0].name != "compute-domain-daemon-service-account")'
}

@test "the controller reaches no secrets, no pods of others, and two definitions only" {
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | map(.resources[]) as $all |
		["pods", "secrets", "daemonsets", "leases", "configmaps"] - $all | length == 5'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules[] | select(.resources == ["customresourcedefinitions"]) |
		.resourceNames == ["computedomains.resource.nvidia.com", "computedomaincliques.resource.nvidia.com"]'
	is 'named("Role"; "compute-domains-role-controller").rules[] | select(.resources == ["leases"] and .verbs != ["create"]) |
		.resourceNames == ["compute-domains-controller"]'
	render --set crds.applyAtStart=false
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | all(.resources != ["customresourcedefinitions"])'
	is 'controller | env("APPLY_CRDS") == "false"'
}

@test "accounts and roles can be somebody else's" {
	render --set serviceAccount.create=false --set serviceAccount.name=theirs
	is '[controller, plugin] | map(.spec.serviceAccountName) == ["theirs-controller", "theirs-kubeletplugin"]'
	is '[kind("ServiceAccount"; "Role")[].metadata.name] == ["compute-domain-daemon-service-account", "compute-domain-daemon-role"]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-resourceslices").spec.matchConditions[0].expression |
		contains("system:serviceaccount:nvidia-compute-domains:theirs-kubeletplugin")'
}

@test "policies deny, close when they fail, and know the accounts by their real names" {
	is 'kind("ValidatingAdmissionPolicy") | length == 2 and all(.spec.failurePolicy == "Fail")'
	is 'kind("ValidatingAdmissionPolicyBinding") | length == 2 and all(.spec.validationActions == ["Deny"])'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-resourceslices").spec.matchConditions[0].expression |
		contains("system:serviceaccount:nvidia-compute-domains:compute-domains-service-account-kubeletplugin")'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-daemon-pods").spec.matchConditions[0].expression |
		contains("system:serviceaccount:nvidia-compute-domains:compute-domain-daemon-service-account")'
}
