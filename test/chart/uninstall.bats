# SPDX-License-Identifier: Apache-2.0
# The hook of "helm uninstall" before it removes controller and plugins.
load chart.bash

hooks='map(select(.metadata.annotations["helm.sh/hook"] == "pre-delete"))'
job="$hooks | kind(\"Job\")[0].spec.template"

@test "helm uninstall removes the daemons first, with objects that exist only for that time" {
	render
	is "$hooks"' | map(.kind) | sort ==
		["ClusterRole", "ClusterRoleBinding", "Job", "Role", "RoleBinding", "ServiceAccount"]'
	is "$hooks"' | all((.kind | startswith("Cluster")) or .metadata.namespace == "nvidia-compute-domains") and
		all(.metadata | .name == "compute-domains-uninstall" and .annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded")'
	# The account and its role exist before the Job.
	is "$hooks"' | map({(.kind): .metadata.annotations["helm.sh/hook-weight"]}) | add ==
		{ServiceAccount: "0", Role: "0", RoleBinding: "0", ClusterRole: "0", ClusterRoleBinding: "0", Job: "1"}'
	is "$job"' | .spec.containers[0] | .command == ["compute-domain-controller", "uninstall", "-v", "$(LOG_VERBOSITY)"] and
		.image == "compute-domains/compute-domains:v0.2.0"'
	is "$job"' | .spec.serviceAccountName == "compute-domains-uninstall" and .spec.securityContext.runAsNonRoot and .spec.restartPolicy == "Never"'
	grep -qF 'streq(argv[1], "uninstall")' "$checkout/src/controller/controller_main.c"
}

@test "the hook's account may stop the controller, delete the daemons' DaemonSet, and watch pods" {
	render
	is "$hooks"' | kind("Role")[0].rules == [
		{apiGroups: ["apps"], resources: ["deployments/scale"], resourceNames: ["compute-domains-controller"], verbs: ["patch"]},
		{apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: ["compute-domain-daemon"], verbs: ["delete"]},
		{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]}]'
	is "$hooks"' | kind("RoleBinding")[0] | .roleRef.name == "compute-domains-uninstall" and .subjects == [
		{kind: "ServiceAccount", name: "compute-domains-uninstall", namespace: "nvidia-compute-domains"}]'
}

# failure: the cluster is OpenShift, and the chart is uninstalled -> the Job of the hook may run as the controller's user
@test "on OpenShift the hook's account gets the controller's security context constraint" {
	local of_job="$hooks"' | kind("RoleBinding") | map(select(.roleRef.name | startswith("system:openshift")))'
	local create
	render
	is "$of_job == []"
	for create in true false; do
		render --api-versions security.openshift.io/v1 --set serviceAccount.create=$create
		is "$of_job"' | map([.metadata.namespace, .metadata.annotations["helm.sh/hook-weight"], .roleRef, .subjects]) == [["nvidia-compute-domains", "0",
			{apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:openshift:scc:nonroot-v2"},
			[{kind: "ServiceAccount", name: "compute-domains-uninstall", namespace: "nvidia-compute-domains"}]]]'
		is "$hooks"' | [.[] | .kind + "/" + .metadata.name] | length == (unique | length)'
	done
	is "$job"' | .spec.serviceAccountName == "compute-domains-uninstall"'
}

# failure: imex.isolation changes, and the chart is uninstalled -> the slice and the labels of shared claims are
#   removed [upgrade]
@test "in every mode, the hook's account may delete the slice of shared claims, and no other, and change nodes as the controller may" {
	local imex=resources.computeDomains.imex mode
	for mode in "" $imex.isolation=channel featureGates.HostManagedIMEX=true featureGates.HostManagedIMEX=true,$imex.isolation=channel \
		nameOverride=other,namespaceOverride=elsewhere; do
		render --set "$mode"
		is "$hooks"' | kind("ClusterRole")[0].rules == [
			{apiGroups: ["resource.k8s.io"], resources: ["resourceslices"], resourceNames: ["compute-domain.nvidia.com-shared"], verbs: ["delete"]},
			{apiGroups: [""], resources: ["nodes"], verbs: ["list", "patch"]}]'
		is "$hooks"' | kind("ClusterRoleBinding")[0] | .roleRef.name == .metadata.name and .metadata.annotations["helm.sh/hook-weight"] == "0"'
		is "($hooks"' | kind("ServiceAccount")[0].metadata) as $account | kind("ValidatingAdmissionPolicy") |
			map(select(.metadata.name | endswith("-controller-nodes")))[0].spec.matchConditions[0].expression |
			contains("system:serviceaccount:\($account.namespace):\($account.name)\u0027") and contains("service-account-controller\u0027")'
	done
}

@test "the hook waits for the controller's pods, and for no others" {
	local selected="($job"' | env("CONTROLLER_SELECTOR") | split(",") | map(split("=") | {(.[0]): .[1]}) | add) as $s'
	local how
	for how in "" selectorLabelsOverride.tier=node selectorLabelsOverride.app=mine nameOverride=dra-driver-nvidia-gpu commonLabels.team=hpc; do
		render --set "$how"
		is "$selected | (kind(\"Deployment\")[0] | .metadata.name as \$n | .spec.template.metadata.labels | contains(\$s)) and
			(kind(\"DaemonSet\")[0].spec.template.metadata.labels | contains(\$s) | not) and ($job | .metadata.labels | contains(\$s) | not)"
		is "($job"' | env("CONTROLLER_DEPLOYMENT")) == kind("Deployment")[0].metadata.name'
	done
}

@test "the documented command finds all objects that Helm keeps" {
	local KINDS
	eval "$(grep '^KINDS=' "$checkout/docs/how-to/uninstall.md")"
	render --set nameOverride=dra-driver-nvidia-gpu
	is 'map(select(.metadata.annotations["helm.sh/resource-policy"] == "keep")) | length > 5 and
		all(.metadata.labels["app.kubernetes.io/instance"] == "compute-domains") and
		((map(.kind | ascii_downcase | sub("y$"; "ie") + "s") | unique) - ($kinds | split(",")) == [])' --arg kinds "$KINDS"
}

@test "the program has every flag that the hook sets" {
	local name
	render --set logFormat=json
	for name in $(jq -r "$words $job"' | .spec.containers[0].env[].name' <<<"$objects"); do
		[[ $name == LOG_VERBOSITY || $name == NVIDIA_VISIBLE_DEVICES ]] ||
			grep -qF "\"$(tr 'A-Z_' 'a-z-' <<<"$name")\"" "$checkout/src/controller/uninstall.c" || { echo "not known: $name"; return 1; }
	done
}

@test "the hook runs in every mode, and not without ComputeDomains" {
	local mode
	for mode in "" featureGates.HostManagedIMEX=true featureGates.HostManagedIMEX=true,resources.computeDomains.imex.isolation=channel; do
		render --set "$mode"
		is "$hooks"' | kind("Job") | length == 1'
	done
	render --set resources.computeDomains.enabled=false --set resources.gpus.enabled=true
	is "$hooks == []"
}
