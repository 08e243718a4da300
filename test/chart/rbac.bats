# SPDX-License-Identifier: Apache-2.0
# The permissions of each program. An attacker who controls a program has the same permissions.
load chart.bash

setup() { render; }

@test "no role has a wildcard" {
	is '[kind("Role"; "ClusterRole")[].rules[] | .apiGroups[], .resources[], .verbs[] | select(contains("*"))] == []'
}

@test "each program has its own account, and so do the daemons of the Go driver" {
	is '[controller.spec.serviceAccountName, plugin.spec.serviceAccountName] ==
		["compute-domains-service-account-controller", "compute-domains-service-account-kubeletplugin"]'
	is '[kind("ServiceAccount")[].metadata.name] | sort == ["compute-domain-daemon", "compute-domain-daemon-service-account",
		"compute-domains-service-account-controller", "compute-domains-service-account-kubeletplugin", "compute-domains-uninstall"]'
}

@test "a kubelet plugin writes slices and events, patches pods, and reads pods in the driver's namespace only" {
	is '[named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] |
		select(.verbs - ["get", "list", "watch"] != []) | .resources[]] == ["resourceslices", "events", "pods"]'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules |
		(map(select(.resources == ["pods"]).verbs) == [["patch"]]) and (.[] | select(.resources == ["nodes"]) | .verbs == ["get", "list", "watch"])'
	is 'named("Role"; "compute-domains-role-kubeletplugin") | .metadata.namespace == "nvidia-compute-domains" and
		.rules == [{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch", "patch"]}]'
}

@test "a daemon reads fabrics, and watches and patches pods, in the driver's namespace" {
	is 'named("ClusterRole"; "compute-domains-clusterrole-daemon").rules == [
		{apiGroups: ["resource.nvidia.com"], resources: ["computedomainfabrics"], verbs: ["get", "list", "watch"]}]'
	is 'named("ClusterRoleBinding"; "compute-domains-clusterrole-binding-daemon") | .roleRef.name == "compute-domains-clusterrole-daemon" and
		.subjects == [{kind: "ServiceAccount", name: "compute-domain-daemon", namespace: "nvidia-compute-domains"}]'
	is 'named("Role"; "compute-domains-role-daemon") | .metadata.namespace == "nvidia-compute-domains" and
		.rules == [{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch", "patch"]}]'
	is 'named("RoleBinding"; "compute-domains-role-binding-daemon") | .roleRef.name == "compute-domains-role-daemon" and
		.subjects == [{kind: "ServiceAccount", name: "compute-domain-daemon", namespace: "nvidia-compute-domains"}]'
}

# A daemon whose node is in use outlives the release, and its token is only valid for the account that it was issued for. A permission must
# not outlive its limits.
# failure: the chart is uninstalled under daemons in use -> their account remains together with the policies
#   that limit it [upgrade]
@test "the account and the roles of the daemons outlive the release, with the policies that limit them, in driver-managed mode, and nothing else does" {
	local kept='[.[] | select(.metadata.annotations["helm.sh/resource-policy"] == "keep") | "\(.kind) \(.metadata.name)"] | sort'
	local mode
	for mode in isolation=domain isolation=channel; do
		render --set resources.computeDomains.imex.$mode
		is "$kept"' == ["ClusterRole compute-domains-clusterrole-daemon", "ClusterRoleBinding compute-domains-clusterrole-binding-daemon",
			"NetworkPolicy compute-domains-daemon", "Role compute-domains-role-daemon", "RoleBinding compute-domains-role-binding-daemon",
			"ServiceAccount compute-domain-daemon", "ValidatingAdmissionPolicy compute-domains-daemon-pods",
			"ValidatingAdmissionPolicyBinding compute-domains-daemon-pods"]'
	done
	render --set featureGates.HostManagedIMEX=true
	is "$kept == []"
}

# The two policies for pods divide the requests of the plugin: each request meets exactly one of them.
# failure: the plugin may patch the pods of users -> only together with the policy that limits it to one
#   annotation [upgrade]
@test "the plugin may patch pods only where a policy restricts it, and asks for retries only then" {
	local modes=("" featureGates.HostManagedIMEX=true resources.gpus.enabled=true,gpuResourcesEnabledOverride=true) mode
	local patches='named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules | any(.resources == ["pods"])'
	local retries='[kind("DaemonSet")[].spec.template.spec.containers[] | [.env[] | select(.name == "RETRY_PREPARES").value]]'
	local policy='[kind("ValidatingAdmissionPolicy"; "ValidatingAdmissionPolicyBinding")[].metadata.name | select(. == "compute-domains-waiting-pods")]'
	local own='named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods").spec.matchConditions'
	local other='named("ValidatingAdmissionPolicy"; "compute-domains-waiting-pods").spec.matchConditions'
	for mode in "${modes[@]}"; do
		render --set "$mode"
		is "$patches"
		is "$retries"' | length > 0 and all(. == ["true"])'
		is "$policy | length == 2"
		is "def text: gsub(\"\\\\s\"; \"\"); ($own"' | length == 2) and (('"$other[1].expression | text) == \"!(\" + ($own[1].expression | text) + \")\")"
		is 'named("ValidatingAdmissionPolicy"; "compute-domains-waiting-pods").spec | .failurePolicy == "Fail" and
			(.matchConstraints.resourceRules[0] | [.operations, .resources] == [["CREATE", "UPDATE", "DELETE", "CONNECT"], ["pods", "pods/*"]])'
		render --set "$mode" --set kubeletPlugin.retryPrepares=false
		is "$patches | not"
		is "$retries"' | length > 0 and all(. == [])'
		is "$policy == []"
		is "$own | length == 1"
	done
	# Without the plugin for ComputeDomains no policy for its own pod exists, so this one has all pods.
	render --set resources.gpus.enabled=true,gpuResourcesEnabledOverride=true,resources.computeDomains.enabled=false
	is "$patches"
	is "$other | length == 1"
	is '[kind("ValidatingAdmissionPolicy")[].metadata.name] | index("compute-domains-plugin-pods") | not'
	# The accounts are those of the user, and the policies still apply.
	render --set serviceAccount.create=false
	is "$policy | length == 2"
}

# The claim of such a pod is only in its status.
# failure: a pod requests GPUs by their extended resource, and its Prepare fails -> the plugin may ask for a retry
@test "the plugin may also change the annotation of pods whose claim is for an extended resource" {
	render --set resources.gpus.enabled=true,gpuResourcesEnabledOverride=true
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-waiting-pods").spec.variables[] | select(.name == "isWaiting").expression |
		gsub("\\s+"; " ") | endswith("&& (size(oldObject.spec.?resourceClaims.orValue([])) > 0 || dyn(oldObject).?status.?extendedResourceClaimStatus.hasValue())")'
}

# failure: the controller may evict pods -> only with imex.evictAfterMinutes, and with the policy that limits it
#   [upgrade]
@test "the controller may evict pods only with evictAfterMinutes, and a policy restricts it" {
	local evicts='named("ClusterRole"; "compute-domains-clusterrole-controller").rules | any(.resources == ["pods/eviction"])'
	local reads='named("ClusterRole"; "compute-domains-clusterrole-controller").rules | any(.resources == ["pods"])'
	local policy='[kind("ValidatingAdmissionPolicy"; "ValidatingAdmissionPolicyBinding")[].metadata.name | select(. == "compute-domains-controller-evictions")]'
	local minutes='[kind("Deployment")[].spec.template.spec.containers[].env[] | select(.name == "EVICT_AFTER_MINUTES").value]'
	render
	is "$evicts | not"
	is "$reads | not"
	is "$policy == []"
	is "$minutes == []"
	render --set resources.computeDomains.imex.evictAfterMinutes=15
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | [.[] | select(.resources[0] | startswith("pods"))] ==
		[{apiGroups: [""], resources: ["pods"], verbs: ["get", "list"]}, {apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"]}]'
	is "$policy | length == 2"
	is "$minutes == [\"15\"]"
}

# After a reboot of its node, a daemon of the Go driver writes its new address into its ComputeDomainClique. It starts nvidia-imex only when
# it can watch its pod.
# failure: a daemon of the Go driver restarts under our roles -> it has all permissions that it needs [go]
@test "a daemon of the Go driver writes cliques, and watches and patches pods, in the driver's namespace" {
	is 'named("Role"; "compute-domain-daemon-role") | .metadata.namespace == "nvidia-compute-domains" and .rules == [
		{apiGroups: ["resource.nvidia.com"], resources: ["computedomaincliques"], verbs: ["get", "list", "watch", "create", "update", "patch"]},
		{apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch", "patch"]}]'
	is 'kind("ClusterRoleBinding") | all(.subjects[0].name != "compute-domain-daemon-service-account")'
}

@test "the controller writes no clique, and creates DaemonSets in the driver's namespace only" {
	render --set 'controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES' --set 'controller.containers.computeDomain.env[0].value=old'
	is '[kind("Role")[] | select(.metadata.name == "compute-domains-role-controller") | .metadata.namespace as $n | .rules[] |
		select(.resources == ["computedomaincliques"] or .resources == ["daemonsets"]) | [$n, .resources[0], .verbs - ["get", "list", "watch"]]] == [
		["nvidia-compute-domains", "daemonsets", ["patch", "delete", "create"]], ["nvidia-compute-domains", "computedomaincliques", ["patch", "delete"]],
		["old", "daemonsets", ["patch", "delete"]], ["old", "computedomaincliques", ["patch", "delete"]]]'
}

@test "a kubelet plugin gets the cliques of the Go driver in the driver's namespaces, where the driver runs IMEX" {
	render --set 'controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES' --set 'controller.containers.computeDomain.env[0].value=old'
	is '[kind("Role")[] | select(.metadata.name == "compute-domains-role-kubeletplugin-cliques")] | map(.metadata.namespace) ==
		["nvidia-compute-domains", "old"] and all(.rules == [{apiGroups: ["resource.nvidia.com"], resources: ["computedomaincliques"], verbs: ["get"]}])'
	is '[kind("RoleBinding")[] | select(.metadata.name == "compute-domains-role-binding-kubeletplugin-cliques")] | map(.metadata.namespace) ==
		["nvidia-compute-domains", "old"] and all(.roleRef.name == "compute-domains-role-kubeletplugin-cliques" and
		.subjects == [{kind: "ServiceAccount", name: "compute-domains-service-account-kubeletplugin", namespace: "nvidia-compute-domains"}])'
	render --set featureGates.HostManagedIMEX=true
	is '[kind("Role"; "RoleBinding")[].metadata.name | select(endswith("-cliques"))] == []'
}

@test "a user who may view or edit a namespace may do so with its ComputeDomains" {
	is 'named("ClusterRole"; "compute-domains-view") | .metadata.labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true" and
		.rules == [{apiGroups: ["resource.nvidia.com"], resources: ["computedomains", "computedomaincliques"], verbs: ["get", "list", "watch"]}]'
	is 'named("ClusterRole"; "compute-domains-edit") | (.metadata.labels | .["rbac.authorization.k8s.io/aggregate-to-edit"] == "true" and
		.["rbac.authorization.k8s.io/aggregate-to-admin"] == "true" and (has("rbac.authorization.k8s.io/aggregate-to-view") | not)) and
		.rules == [{apiGroups: ["resource.nvidia.com"], resources: ["computedomains"], verbs: ["create", "update", "patch", "delete", "deletecollection"]}]'
	render --set serviceAccount.create=false
	is 'named("ClusterRole"; "compute-domains-view") | true'
}

@test "the controller reaches no secrets, no pods of users, and only the definitions of our kinds" {
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

# watched FILE...: the kinds that these files or folders of the source watch, as group/plural in JSON.
watched() {
	local all name
	all=$(cat "$checkout/src/kube/kube_object.c" "$checkout/src/api/resources.c" | sed 's/CD_GROUP/"resource.nvidia.com"/; s/ RESOURCE_API/ "resource.k8s.io", NULL/' | tr -d '\n' |
		grep --only-matching --perl-regexp 'kube_resource kube_\w+ = \{\s*"[^"]*",\s*[^,]+,\s*"[a-z]+"' |
		sed -E 's/kube_resource (kube_\w+) = \{ *"([^"]*)".*"([a-z]+)"$/\1 \2\/\3/')
	for name in $(cd "$checkout/src" && grep --recursive --no-filename --only-matching --extended-regexp 'kube_[a-z_]+,' "$@" | tr -d , | sort --unique); do
		sed -n "s/^$name //p" <<<"$all"
	done | jq --raw-input | jq --slurp --compact-output
}

# An annotation or a label from another mode starts a watch in any mode.
# may_watch ROLES KINDS: together these roles allow to list and watch each of them.
may_watch() {
	is '[kind("ClusterRole"; "Role")[] | select(.metadata.name | test($roles)) | .rules[]] as $rules |
		all($kinds[]; split("/") as [$group, $plural] | any($rules[];
			(.apiGroups | index($group)) and (.resources | index($plural)) and (["list", "watch"] - .verbs == [])))' --arg roles "$1" --argjson kinds "$2"
}

# failure: objects of another mode remain -> each program may watch all kinds in every mode
@test "every watch of controller, plugin and daemon is allowed in every mode, and so is the creation of the definition of fabric objects" {
	local imex=resources.computeDomains.imex all mode plugin daemon
	all=$(watched controller/watch.c)
	plugin=$(watched {cd_plugin/{cd_plugin_main,fabric_watch,lookup,own_pod},kube/report_sender,node/{plugin_shutdown,slice_publisher}}.c)
	daemon=$(watched daemon kube/report_sender.c)
	echo "watched: $all, by the plugin $plugin, by a daemon $daemon"
	jq --exit-status 'length == 10 and contains(["resource.nvidia.com/computedomainfabrics", "apps/daemonsets", "/pods"])' <<<"$all"
	jq --exit-status 'sort == ["/nodes", "/pods", "resource.k8s.io/resourceslices", "resource.nvidia.com/computedomainfabrics", "resource.nvidia.com/computedomains"]' <<<"$plugin"
	jq --exit-status 'sort == ["/pods", "resource.nvidia.com/computedomainfabrics"]' <<<"$daemon"
	for mode in "" $imex.isolation=channel featureGates.HostManagedIMEX=true \
		featureGates.HostManagedIMEX=true,$imex.isolation=channel $imex.mode=hostManaged,featureGates.HostManagedIMEXDaemon=true \
		$imex.mode=hostManaged,featureGates.HostManagedIMEXDaemon=true,$imex.isolation=channel; do
		render --set "$mode" --set resources.computeDomains.rackDomains.enabled=true --set resources.computeDomains.rackDomains.nameFromNodeLabel=example.com/rack
		may_watch role-controller "$all"
		may_watch kubeletplugin "$plugin"
		# If the hosts run IMEX now, earlier daemons keep their earlier roles, because Helm keeps them.
		[[ $mode == *HostManaged* ]] || may_watch "clusterrole-daemon|role-daemon" "$daemon"
		is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules | any(.resources == ["customresourcedefinitions"] and
			(.resourceNames | index("computedomainfabrics.resource.nvidia.com")) and (.verbs | index("create")))'
	done
	[ -e "$chart/crds/resource.nvidia.com_computedomainfabrics.yaml" ]
}

# granted VERBS: what the roles of controller, plugin and daemon allow, with each option that adds rules, in the form of test/agree/forms.
granted() {
	local domains=resources.computeDomains
	render --set "$domains.imex.isolation=channel,$domains.rackDomains.enabled=true,$domains.autoDomains.enabled=true,$domains.imex.evictAfterMinutes=5"
	jq --raw-output --arg verbs "$1" '.[] | select((.kind == "ClusterRole" or .kind == "Role") and (.metadata.name | test("-(controller|kubeletplugin|daemon)$"))) |
		.rules[] | .apiGroups[] as $group | .resources[] as $resource | .verbs[] | select(test($verbs)) | . + " " +
		($resource | sub("(?<sub>/.*)?$"; (if $group == "" then "" else "." + $group end) + (.sub // "")))' <<<"$objects" | sort -u
}

# test/agree/collect records the requests of the programs, and test/agree/left-out has the resources that it omits.
@test "the roles allow each request that the programs send, and no write that they do not send" {
	local sent=$BATS_TEST_TMPDIR/sent
	awk '!/^#/ { print ($1 == "apply" ? "patch" : $1), $2 } $1 == "apply" { print "create", $2 }' "$checkout/test/agree/forms" | sort -u >"$sent"
	[[ $(wc -l <"$sent") -gt 50 ]]
	granted . >"$BATS_TEST_TMPDIR/granted"
	[[ -z $(comm -13 "$BATS_TEST_TMPDIR/granted" "$sent" | tee /dev/stderr) ]]
	granted '^(create|update|patch|delete)$' | grep -vFf <(grep -E '^[a-z./0-9]+$' "$checkout/test/agree/left-out") >"$BATS_TEST_TMPDIR/writes"
	# The API server checks `binding` for another request.
	[[ $(comm -23 "$BATS_TEST_TMPDIR/writes" "$sent" | tee /dev/stderr | tr '\n' ',') == \
		"patch resourceclaims.resource.k8s.io/binding," ]]
}

@test "with serviceAccount.create=false controller and plugin use existing accounts and roles" {
	render --set serviceAccount.create=false --set serviceAccount.name=theirs
	is '[controller, plugin] | map(.spec.serviceAccountName) == ["theirs-controller", "theirs-kubeletplugin"]'
	is 'kind("ClusterRole"; "ClusterRoleBinding") | map(.metadata.name) | sort ==
		["compute-domains-clusterrole-binding-daemon", "compute-domains-clusterrole-daemon", "compute-domains-edit", "compute-domains-uninstall",
		"compute-domains-uninstall", "compute-domains-view"]'
	is '[kind("ServiceAccount"; "Role")[].metadata.name] | sort ==
		["compute-domain-daemon", "compute-domain-daemon-role", "compute-domain-daemon-service-account", "compute-domains-role-daemon",
		"compute-domains-uninstall", "compute-domains-uninstall"]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-resourceslices").spec.matchConditions[0].expression |
		contains("system:serviceaccount:nvidia-compute-domains:theirs-kubeletplugin")'
}

# The policy that checks all pods fails open, because another policy behind it fails closed.
@test "policies deny, fail closed, and have the real names of the accounts" {
	local names='["compute-domains-controller-claimtemplates", "compute-domains-controller-daemonsets", "compute-domains-controller-nodes",
		"compute-domains-controller-sharedclaims", "compute-domains-daemon-claims", "compute-domains-daemon-extended-resource", "compute-domains-daemon-pods", "compute-domains-events", "compute-domains-fabrics", "compute-domains-go-daemon-pods", "compute-domains-plugin-pods", "compute-domains-resourceslices", "compute-domains-shared-slice", "compute-domains-waiting-pods"]'
	is 'kind("ValidatingAdmissionPolicy") | (map(.metadata.name) | sort) == $n and
		all(.spec.failurePolicy == (if .metadata.name == "compute-domains-daemon-extended-resource" then "Ignore" else "Fail" end))' --argjson n "$names"
	is 'kind("ValidatingAdmissionPolicyBinding") | (map(.spec.policyName) | sort) == $n and all(.spec.validationActions == ["Deny"])' --argjson n "$names"
	is 'def user($p): named("ValidatingAdmissionPolicy"; "compute-domains-\($p)").spec.matchConditions[0].expression;
		def account: "system:serviceaccount:nvidia-compute-domains:compute-domains-service-account-";
		(["resourceslices", "events"] as $p | all($p[] as $x | user($x); contains("\u0027\(account)kubeletplugin\u0027"))) and
		(["controller-nodes", "controller-daemonsets", "controller-claimtemplates", "controller-sharedclaims"] as $p | all($p[] as $x | user($x);
			contains("\u0027\(account)controller\u0027")))'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-daemon-pods").spec.matchConditions[0].expression |
		. == "request.userInfo.username in [\u0027system:serviceaccount:nvidia-compute-domains:compute-domain-daemon\u0027]"'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-go-daemon-pods").spec.matchConditions[0].expression |
		. == "request.userInfo.username in [\u0027system:serviceaccount:nvidia-compute-domains:compute-domain-daemon-service-account\u0027]"'
}

@test "a kubelet plugin reports on its own pod in every mode, and may write no other annotation there" {
	local imex=resources.computeDomains.imex mode
	for mode in "" $imex.isolation=channel featureGates.HostManagedIMEX=true \
		featureGates.HostManagedIMEX=true,$imex.isolation=channel $imex.mode=hostManaged,featureGates.HostManagedIMEXDaemon=true; do
		render --set "$mode"
		is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods").spec | .failurePolicy == "Fail" and
			any(.validations[].expression; contains("\u0027imex.resource.nvidia.com/unprepared-daemon-claim\u0027")) and
			any(.validations[].expression; contains("\u0027imex.resource.nvidia.com/refused-daemon-pod\u0027")) and
			any(.validations[].expression; contains("\u0027imex.resource.nvidia.com/withheld\u0027")) and
			all(.validations[].expression; contains("startsWith") | not)'
		is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-plugin-pods").spec.validationActions == ["Deny"]'
		is 'named("Role"; "compute-domains-role-kubeletplugin").rules[0].verbs == ["list", "watch", "patch"]'
		is 'named("RoleBinding"; "compute-domains-role-binding-kubeletplugin").subjects[0].name == "compute-domains-service-account-kubeletplugin"'
	done
	render
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods") | tostring | contains("host-") | not'
}

@test "the policies of pods and nodes leave no subresource open" {
	is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("daemon-pods|controller-nodes")) |
		.spec.matchConstraints.resourceRules[0] | [.operations, .resources]] == [
		[["CREATE", "UPDATE", "DELETE", "CONNECT"], ["nodes", "nodes/*"]], [["CREATE", "UPDATE", "DELETE", "CONNECT"], ["pods", "pods/*"]],
		[["CREATE", "UPDATE", "DELETE", "CONNECT"], ["pods", "pods/*"]]]'
}

# failure: a tenant requests the device of daemons -> a policy refuses it in every mode [tenants]
@test "the daemons' device is reserved for the driver's namespaces in every mode" {
	local rule='named("ValidatingAdmissionPolicy"; "compute-domains-daemon-claims").spec'
	local mode
	for mode in "" featureGates.HostManagedIMEX=true resources.computeDomains.imex.mode=hostManaged,featureGates.HostManagedIMEXDaemon=true; do
		render --set "$mode" --set 'controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES' \
			--set 'controller.containers.computeDomain.env[0].value=old older'
		is "$rule"' | .matchConditions[0].expression == "!(request.namespace in [\u0027nvidia-compute-domains\u0027, \u0027old\u0027, \u0027older\u0027])"'
		is "$rule"' | [.matchConstraints.resourceRules[] | .apiVersions] | all(. == ["v1", "v1beta2", "v1beta1"])'
	done
}

# rules POLICY: its expressions, in one text.
rules() { jq -r "$words named(\"ValidatingAdmissionPolicy\"; \"compute-domains-$1\").spec.validations[].expression" <<<"$objects"; }

@test "the controller labels nodes for the daemon, and starts pods by its DaemonSet, with its account and its claim template only" {
	rules controller-nodes | grep -qF "k in ['resource.nvidia.com/computeDomain', 'resource.nvidia.com/imex-daemon', 'resource.nvidia.com/shared-channel', 'nvidia.com/gpu.clique']"
	rules controller-daemonsets | grep -qF "(request.namespace == 'nvidia-compute-domains' && variables.names.all(n, n == 'compute-domain-daemon'))"
	rules controller-daemonsets | grep -qF "variables.pod.?serviceAccountName.orValue('') == 'compute-domain-daemon'"
	rules controller-daemonsets | grep -qF "c.?resourceClaimTemplateName.orValue('') == 'compute-domain-daemon')"
	# The controller may change and delete objects of the Go driver.
	rules controller-daemonsets | grep -qF "n.startsWith('computedomain-daemon-')"
	# The programs use the same names.
	grep -qF '#define CD_DAEMON_OBJECT "compute-domain-daemon"' "$checkout/src/api/names.h"
	grep -qF '#define CD_LABEL_DAEMON "resource.nvidia.com/imex-daemon"' "$checkout/src/api/names.h"
}

@test "a daemon labels its own pod with its ComputeDomain and its clique, and one of the Go driver only with its clique" {
	rules daemon-pods | grep -qF "k in ['resource.nvidia.com/computeDomain', 'resource.nvidia.com/computeDomain.cliqueID']"
	rules go-daemon-pods | grep -qF "k in ['resource.nvidia.com/computeDomain.cliqueID']"
}

@test "the controller may start daemons of its image only, in any version, named by a value or by the environment" {
	local rule='named("ValidatingAdmissionPolicy"; "compute-domains-controller-daemonsets").spec.validations[] |
		.message // "" | select(contains("with the image")) | ltrimstr("the controller may start pods with the image ") | rtrimstr(" only")'
	is "$rule"' | . == "compute-domains/compute-domains"'
	render --set image.repository=reg.example.org:5000/a/b --set image.tag=v7
	is "$rule"' | . == "reg.example.org:5000/a/b"'
	render --set 'controller.containers.computeDomain.env[0].name=IMAGE_NAME' \
		--set 'controller.containers.computeDomain.env[0].value=reg.example.org:5000/own@sha256:00'
	is "$rule"' | . == "reg.example.org:5000/own"'
}
