# SPDX-License-Identifier: Apache-2.0
# What each program may do, which is what someone may do who got hold of it.
load chart.bash

setup() { render; }

@test "no role has a wildcard" {
	is '[kind("Role"; "ClusterRole")[].rules[] | .apiGroups[], .resources[], .verbs[] | select(contains("*"))] == []'
}

@test "each program has an account of its own" {
	is '[controller.spec.serviceAccountName, plugin.spec.serviceAccountName] ==
		["compute-domains-service-account-controller", "compute-domains-service-account-kubeletplugin"]'
	is '[kind("ServiceAccount")[].metadata.name] | sort == ["compute-domain-agent-service-account", "compute-domain-daemon-service-account",
		"compute-domains-service-account-controller", "compute-domains-service-account-kubeletplugin"]'
}

@test "a kubelet plugin writes slices and events, and reads no pods" {
	is '[named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] |
		select(.verbs - ["get", "list", "watch"] != []) | .resources[]] == ["resourceslices", "events"]'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules |
		all(.resources != ["pods"]) and (.[] | select(.resources == ["nodes"]) | .verbs == ["get", "list", "watch"])'
	is 'kind("RoleBinding") | all(.subjects[0].name | endswith("kubeletplugin") | not)'
}

# Ours neither lists nor watches pods. A daemon of the Go driver, which lives on until nobody uses its node, waits for its own pod in a
# watch before it starts nvidia-imex: without these verbs it could not start again.
@test "a daemon reads cliques and patches pods, in the driver's namespace" {
	is 'named("Role"; "compute-domain-daemon-role") | .metadata.namespace == "nvidia-compute-domains" and .rules == [
		{apiGroups: ["resource.nvidia.com"], resources: ["computedomaincliques"], verbs: ["get", "list", "watch"]},
		{apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch", "patch"]}]'
	is 'kind("ClusterRoleBinding") | all(.subjects[0].name != "compute-domain-daemon-service-account")'
}

@test "who may view or edit a namespace may do so with its ComputeDomains" {
	is 'named("ClusterRole"; "compute-domains-view") | .metadata.labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true" and
		.rules == [{apiGroups: ["resource.nvidia.com"], resources: ["computedomains", "computedomaincliques"], verbs: ["get", "list", "watch"]}]'
	is 'named("ClusterRole"; "compute-domains-edit") | (.metadata.labels | .["rbac.authorization.k8s.io/aggregate-to-edit"] == "true" and
		.["rbac.authorization.k8s.io/aggregate-to-admin"] == "true" and (has("rbac.authorization.k8s.io/aggregate-to-view") | not)) and
		.rules == [{apiGroups: ["resource.nvidia.com"], resources: ["computedomains"], verbs: ["create", "update", "patch", "delete", "deletecollection"]}]'
	render --set serviceAccount.create=false
	is 'named("ClusterRole"; "compute-domains-view") | true'
}

@test "the controller reaches no secrets, no pods of others, and the definitions of its own kinds only" {
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | map(.resources[]) as $all |
		["pods", "secrets", "daemonsets", "leases", "configmaps"] - $all | length == 5'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules[] | select(.resources == ["customresourcedefinitions"]) |
		.resourceNames == ["computedomains.resource.nvidia.com", "computedomaincliques.resource.nvidia.com", "computedomainfabrics.resource.nvidia.com"]'
	is 'named("Role"; "compute-domains-role-controller").rules[] | select(.resources == ["leases"] and .verbs != ["create"]) |
		.resourceNames == ["compute-domains-controller"]'
	render --set crds.applyAtStart=false
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules[] | select(.resources == ["customresourcedefinitions"]) |
		.resourceNames == ["computedomainfabrics.resource.nvidia.com"]'
	is 'controller | env("APPLY_CRDS") == "false"'
}

# watched FILE...: the kinds that these files of the source watch, as group/plural in JSON.
watched() {
	local all name
	all=$(cat "$checkout/src/kube/kube_resource.c" "$checkout/src/api/resources.c" | sed 's/CD_GROUP/"resource.nvidia.com"/; s/ RESOURCE_API/ "resource.k8s.io", NULL/' | tr -d '\n' |
		grep --only-matching --perl-regexp 'kube_resource kube_\w+ = \{\s*"[^"]*",\s*[^,]+,\s*"[a-z]+"' |
		sed -E 's/kube_resource (kube_\w+) = \{ *"([^"]*)".*"([a-z]+)"$/\1 \2\/\3/')
	for name in $(cd "$checkout/src" && grep --no-filename --only-matching --extended-regexp 'kube_[a-z_]+,' "$@" | tr -d , | sort --unique); do
		sed -n "s/^$name //p" <<<"$all"
	done | jq --raw-input | jq --slurp --compact-output
}

# An annotation or a label that another mode left starts a watch in any mode.
# may_watch ROLES KINDS: together these roles allow to list and watch each of them.
may_watch() {
	is '[kind("ClusterRole"; "Role")[] | select(.metadata.name | test($roles)) | .rules[]] as $rules |
		all($kinds[]; split("/") as [$group, $plural] | any($rules[];
			(.apiGroups | index($group)) and (.resources | index($plural)) and (["list", "watch"] - .verbs == [])))' --arg roles "$1" --argjson kinds "$2"
}

@test "every watch of controller, plugin and agent is allowed in every mode, and so is to create the kind of fabrics" {
	local imex=resources.computeDomains.imex all mode plugin agent
	all=$(watched controller/watch.c)
	plugin=$(watched cd_plugin/{fabric_watch,lookup,rack_watch}.c node/{leaving,slice_publisher}.c)
	agent=$(watched daemon/resident.c)
	echo "watched: $all, by the plugin $plugin, by an agent $agent"
	jq --exit-status 'length == 10 and contains(["resource.nvidia.com/computedomainfabrics", "apps/daemonsets", "/pods"])' <<<"$all"
	jq --exit-status 'sort == ["/nodes", "resource.k8s.io/resourceslices", "resource.nvidia.com/computedomainfabrics", "resource.nvidia.com/computedomains"]' <<<"$plugin"
	jq --exit-status 'index("resource.nvidia.com/computedomainfabrics") != null' <<<"$agent"
	for mode in "" $imex.agents=true $imex.agents=true,$imex.isolation=channel featureGates.HostManagedIMEX=true \
		featureGates.HostManagedIMEX=true,$imex.isolation=channel $imex.mode=hostManaged,featureGates.HostManagedIMEXDaemon=true \
		$imex.mode=hostManaged,featureGates.HostManagedIMEXDaemon=true,$imex.isolation=channel; do
		render --set "$mode" --set resources.computeDomains.rackDomains.enabled=true --set resources.computeDomains.rackDomains.nameFromNodeLabel=example.com/rack
		may_watch role-controller "$all"
		may_watch kubeletplugin "$plugin"
		# Where the hosts run IMEX, agents of before have the roles of before, which Helm keeps.
		[[ $mode == *HostManaged* ]] || may_watch role-agent "$agent"
		is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | any(.resources == ["customresourcedefinitions"] and
			(.resourceNames | index("computedomainfabrics.resource.nvidia.com")) and (.verbs | index("create")))'
	done
	[ -e "$chart/crds/resource.nvidia.com_computedomainfabrics.yaml" ]
}

@test "accounts and roles can be somebody else's" {
	render --set serviceAccount.create=false --set serviceAccount.name=theirs
	is '[controller, plugin] | map(.spec.serviceAccountName) == ["theirs-controller", "theirs-kubeletplugin"]'
	is 'kind("ClusterRole"; "ClusterRoleBinding") | map(.metadata.name) | sort ==
		["compute-domains-clusterrole-agent", "compute-domains-clusterrole-binding-agent", "compute-domains-edit", "compute-domains-view"]'
	is '[kind("ServiceAccount"; "Role")[].metadata.name] | sort ==
		["compute-domain-agent-role", "compute-domain-agent-service-account", "compute-domain-daemon-role", "compute-domain-daemon-service-account"]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-resourceslices").spec.matchConditions[0].expression |
		contains("system:serviceaccount:nvidia-compute-domains:theirs-kubeletplugin")'
}

# The policy that looks at everybody's pods stands before one that closes.
@test "policies deny, close when they fail, and know the accounts by their real names" {
	local names='["compute-domains-agent-pods", "compute-domains-controller-claimtemplates", "compute-domains-controller-daemonsets", "compute-domains-controller-nodes",
		"compute-domains-daemon-claims", "compute-domains-daemon-extended-resource", "compute-domains-daemon-pods", "compute-domains-events", "compute-domains-fabrics", "compute-domains-resourceslices"]'
	is 'kind("ValidatingAdmissionPolicy") | (map(.metadata.name) | sort) == $n and
		all(.spec.failurePolicy == (if .metadata.name == "compute-domains-daemon-extended-resource" then "Ignore" else "Fail" end))' --argjson n "$names"
	is 'kind("ValidatingAdmissionPolicyBinding") | (map(.spec.policyName) | sort) == $n and all(.spec.validationActions == ["Deny"])' --argjson n "$names"
	is 'def user($p): named("ValidatingAdmissionPolicy"; "compute-domains-\($p)").spec.matchConditions[0].expression;
		def account: "system:serviceaccount:nvidia-compute-domains:compute-domains-service-account-";
		(["resourceslices", "events"] as $p | all($p[] as $x | user($x); contains("\u0027\(account)kubeletplugin\u0027"))) and
		(["controller-nodes", "controller-daemonsets", "controller-claimtemplates"] as $p | all($p[] as $x | user($x);
			contains("\u0027\(account)controller\u0027")))'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-daemon-pods").spec.matchConditions[0].expression |
		contains("system:serviceaccount:nvidia-compute-domains:compute-domain-daemon-service-account")'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-agent-pods").spec.matchConditions[0].expression |
		contains("system:serviceaccount:nvidia-compute-domains:compute-domain-agent-service-account")'
}

@test "an agent reads fabrics and patches pods, in the driver's namespace" {
	is 'named("ClusterRole"; "compute-domains-clusterrole-agent").rules == [
		{apiGroups: ["resource.nvidia.com"], resources: ["computedomainfabrics"], verbs: ["get", "list", "watch"]}]'
	is 'named("Role"; "compute-domain-agent-role") | .metadata.namespace == "nvidia-compute-domains" and
		.rules == [{apiGroups: [""], resources: ["pods"], verbs: ["patch"]}]'
	local kept='[.[] | select(.metadata.annotations["helm.sh/resource-policy"] == "keep") | .kind] | sort'
	is "$kept == []"
	# Agents outlive the release, and an account that is made anew is another one.
	render --set resources.computeDomains.imex.agents=true
	is "$kept"' == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"]'
}

@test "the policies of pods and nodes leave no subresource open" {
	is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("daemon-pods|controller-nodes")) |
		.spec.matchConstraints.resourceRules[0] | [.operations, .resources]] == [
		[["CREATE", "UPDATE", "DELETE", "CONNECT"], ["nodes", "nodes/*"]], [["CREATE", "UPDATE", "DELETE", "CONNECT"], ["pods", "pods/*"]]]'
}

@test "the daemons' device is for the driver's namespaces, and refused elsewhere in every mode" {
	local rule='named("ValidatingAdmissionPolicy"; "compute-domains-daemon-claims").spec'
	local mode
	for mode in "" featureGates.HostManagedIMEX=true resources.computeDomains.imex.mode=hostManaged,featureGates.HostManagedIMEXDaemon=true; do
		render --set "$mode" --set 'controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES' \
			--set 'controller.containers.computeDomain.env[0].value=old older'
		is "$rule"' | .matchConditions[0].expression == "!(request.namespace in [\u0027nvidia-compute-domains\u0027, \u0027old\u0027, \u0027older\u0027])"'
		is "$rule"' | [.matchConstraints.resourceRules[] | .apiVersions] | all(. == ["v1", "v1beta2", "v1beta1"])'
	done
}

@test "the controller may start daemons of its image only, whatever its version, and whoever names it" {
	local rule='named("ValidatingAdmissionPolicy"; "compute-domains-controller-daemonsets").spec.validations[] |
		.message // "" | select(contains("with the image")) | ltrimstr("the controller may start pods with the image ") | rtrimstr(" only")'
	is "$rule"' | . == "compute-domains/compute-domains"'
	render --set image.repository=reg.example.org:5000/a/b --set image.tag=v7
	is "$rule"' | . == "reg.example.org:5000/a/b"'
	render --set 'controller.containers.computeDomain.env[0].name=IMAGE_NAME' \
		--set 'controller.containers.computeDomain.env[0].value=reg.example.org:5000/own@sha256:00'
	is "$rule"' | . == "reg.example.org:5000/own"'
}
