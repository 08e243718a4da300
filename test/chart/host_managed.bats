# SPDX-License-Identifier: Apache-2.0
# The chart's objects if the hosts run nvidia-imex.
load chart.bash

gate=(--set featureGates.HostManagedIMEX=true)
word=(--set resources.computeDomains.imex.mode=hostManaged)
go=("${word[@]}" --set featureGates.HostManagedIMEXDaemon=true) # as users of the Go driver set it
waits=resources.computeDomains.imex.waitForHost

@test "the gate and imex.mode=hostManaged make the same objects, except for the settings themselves" {
	local spelling others='del(.[].spec.template.spec.containers[]?.env[]? | select(.name | IN("FEATURE_GATES", "IMEX_MODE")))'
	render "${gate[@]}" --set admission.hostManaged.enabled=true
	jq "$others" <<<"$objects" >"$BATS_TEST_TMPDIR/gate"
	grep -q IMEX_ISOLATION "$BATS_TEST_TMPDIR/gate"
	for spelling in word go; do
		local -n flags=$spelling
		render "${flags[@]}" --set admission.hostManaged.enabled=true
		diff "$BATS_TEST_TMPDIR/gate" <(jq "$others" <<<"$objects")
	done
}

@test "default channel DeviceClass exists, daemon DeviceClass does not exist" {
	render "${gate[@]}"
	is '[kind("DeviceClass")[].metadata.name] == ["compute-domain-default-channel.nvidia.com"]'
}

@test "daemon RBAC and service account do not exist, nor any other object of the daemons" {
	render "${gate[@]}"
	is '[.[] | "\(.kind) \(.metadata.name)" | select(contains("daemon"))] | unique == [
		"ValidatingAdmissionPolicy compute-domains-controller-daemonsets", "ValidatingAdmissionPolicy compute-domains-daemon-claims",
		"ValidatingAdmissionPolicy compute-domains-daemon-extended-resource",
		"ValidatingAdmissionPolicyBinding compute-domains-controller-daemonsets", "ValidatingAdmissionPolicyBinding compute-domains-daemon-claims",
		"ValidatingAdmissionPolicyBinding compute-domains-daemon-extended-resource"]'
	render "${gate[@]}" --api-versions security.openshift.io/v1
	is 'kind("SecurityContextConstraints") == []'
}

@test "controller and kubelet plugin receive FEATURE_GATES, IMEX_MODE and IMEX_ISOLATION" {
	render "${gate[@]}"
	is '[controller, plugin] | all(env("FEATURE_GATES") == "HostManagedIMEX=true,")'
	is '[controller, plugin] | all(env("IMEX_ISOLATION") == "domain")'
	render "${go[@]}"
	is '[controller, plugin] | all(env("FEATURE_GATES") == "HostManagedIMEXDaemon=true," and env("IMEX_MODE") == "hostManaged")'
}

@test "the plugin gets waitForHost only if it is set: the program itself evaluates the Go driver's gate" {
	local spelling
	for spelling in gate word go; do
		local -n flags=$spelling
		render "${flags[@]}"
		is '[plugin | env("IMEX_WAIT_FOR_HOST")] == []'
		render "${flags[@]}" --set $waits=true
		is 'plugin | env("IMEX_WAIT_FOR_HOST") == "true"'
		render "${flags[@]}" --set $waits=false
		is 'plugin | env("IMEX_WAIT_FOR_HOST") == "false"'
	done
	render --set $waits=false
}

@test "the gate needs no second value and no webhook" {
	render "${gate[@]}"
	is '[kind("ValidatingWebhookConfiguration"), kind("Service")] == [[], []]'
	render --set-string featureGates.HostManagedIMEX=true
	is '[kind("DeviceClass")[].metadata.name] == ["compute-domain-default-channel.nvidia.com"]'
}

@test "the controller may delete the objects of the other mode, and create none of them" {
	render "${gate[@]}"
	is '[named("Role"; "compute-domains-role-controller").rules[] |
		select(.resources == ["daemonsets"] or .resources == ["computedomaincliques"]) | .verbs] |
		length == 2 and all(. == ["get", "list", "watch", "patch", "delete"])'
	is 'named("Role"; "compute-domains-role-controller").rules[] | select(.resources == ["pods"]) | .verbs == ["get", "list", "watch", "delete"]'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules[] | select(.resources == ["resourceclaimtemplates"]) |
		.verbs | contains(["create", "delete"])'
}

@test "a kubelet plugin may patch pods, and a policy restricts it to its own" {
	render "${gate[@]}"
	is 'named("Role"; "compute-domains-role-kubeletplugin") | .metadata.namespace == "nvidia-compute-domains" and
		.rules == [{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch", "patch"]}]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods").spec | .failurePolicy == "Fail" and
		(.matchConditions[0].expression | contains("system:serviceaccount:nvidia-compute-domains:compute-domains-service-account-kubeletplugin"))'
	is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-plugin-pods").spec.validationActions == ["Deny"]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods").spec.validations[-1].message ==
		"a kubelet plugin may change no annotation of its pod but imex.resource.nvidia.com/unprepared-daemon-claim, refused-daemon-pod, withheld, host-state and host-reason"'
}

@test "the controller finds the kubelet plugin's pods by their labels, and not its own" {
	local selected='(controller | env("KUBELET_PLUGIN_SELECTOR") | split(",") | map(split("=") | {(.[0]): .[1]}) | add) as $s'
	render "${gate[@]}"
	is "$selected | plugin.metadata.labels == \$s and (controller.metadata.labels | contains(\$s) | not)"
	render "${gate[@]}" --set selectorLabelsOverride.tier=node
	is "$selected | plugin.metadata.labels == \$s and (controller.metadata.labels | contains(\$s) | not)"
	is "$selected | \$s.tier == \"node\""
	# If the label that distinguishes them is overridden, they have another one.
	render "${gate[@]}" --set selectorLabelsOverride.app=mine
	is "$selected | plugin.metadata.labels == \$s and \$s.app == \"mine\" and (controller.metadata.labels | contains(\$s) | not)"
	# In driver-managed mode the plugins report which daemon claim they have unprepared.
	render
	is "$selected | plugin.metadata.labels == \$s and (controller.metadata.labels | contains(\$s) | not)"
}

@test "settings that contradict each other are refused with the errors of the programs" {
	refused "feature gate HostManagedIMEX=false contradicts resources.computeDomains.imex.mode=hostManaged (IMEX_MODE)" \
		"${go[@]}" --set featureGates.HostManagedIMEX=false
	refused "resources.computeDomains.imex.waitForHost=true (IMEX_WAIT_FOR_HOST) requires imex.mode=hostManaged" --set $waits=true
	refused "resources.computeDomains.imex.waitForHost=true (IMEX_WAIT_FOR_HOST) requires imex.mode=hostManaged" --set $waits=true \
		--set featureGates.HostManagedIMEXDaemon=true # which only allows the mode
	! grep -q "resources.computeDomains" "$checkout/src/model/mode.c" || false # the chart's errors are those of the programs, after this prefix
	local sentence
	while read -r sentence; do
		tr -d '"\n' <"$checkout/src/model/mode.c" | tr -s ' ' | grep -qF "$sentence"
	done <<-'END'
		feature gate HostManagedIMEX=false contradicts imex.mode=hostManaged (IMEX_MODE): remove the gate, or set imex.mode=driverManaged
		imex.waitForHost=true (IMEX_WAIT_FOR_HOST) requires imex.mode=hostManaged: the driver runs IMEX
	END
}

# mode_of TITLE: the arguments of helm in this procedure of docs/how-to/upgrade.md, as $MODE.
mode_of() {
	local IMEX
	eval "$(awk -v title="$1" '$0 == title { found = 1 } found && /^# 1/ { exit } found && /^(IMEX|MODE)=/' "$checkout/docs/how-to/upgrade.md")"
}
@test "the documented changes of the mode remove the values that requested the other mode" {
	local spelling MODE
	mode_of "From host-managed to driver-managed:"
	for spelling in gate word go; do
		local -n flags=$spelling
		render "${flags[@]}" --set $waits=true $MODE
		is '[controller, plugin] | all(env("IMEX_MODE") == "driverManaged" and ([env("FEATURE_GATES")] | tojson | contains("HostManagedIMEX=") | not))'
	done
	render $MODE
	mode_of "From driver-managed to host-managed:"
	for spelling in false null; do
		render --set featureGates.HostManagedIMEX=$spelling $MODE
		is '[controller, plugin] | all(env("IMEX_MODE") == "hostManaged" and [env("FEATURE_GATES")] == [])'
	done
}

@test "the admission policy for claims is optional, off by default, and fails open" {
	render "${gate[@]}"
	is '[kind("ValidatingAdmissionPolicy")[].metadata.name | select(test("-resourceclaim"))] == []'
	render "${gate[@]}" --set admission.hostManaged.enabled=true
	is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("-resourceclaim"))] | length == 2 and
		all(.spec | .failurePolicy == "Ignore" and .matchConstraints.resourceRules[0].apiVersions == ["v1", "v1beta2", "v1beta1"] and
		.matchConstraints.resourceRules[0].operations == ["CREATE"])'
	is 'map("\(.kind)/\(.metadata.namespace)/\(.metadata.name)") | length == (unique | length)'
	render --set admission.hostManaged.enabled=true
	is '[kind("ValidatingAdmissionPolicy")[].metadata.name | select(test("-resourceclaim"))] == []'
}

@test "the admission policy also refuses ComputeDomains whose claim templates would be refused" {
	local rule='[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name == "compute-domains-computedomains")]'
	render "${gate[@]}" --set admission.hostManaged.enabled=true
	is "$rule"' | length == 1 and (.[0].spec | .failurePolicy == "Ignore" and .matchConstraints.resourceRules == [{
		apiGroups: ["resource.nvidia.com"], apiVersions: ["v1beta1"], operations: ["CREATE"], resources: ["computedomains"]}])'
	is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-computedomains").spec.validationActions == ["Deny"]'
	is 'tojson | contains("with host-managed IMEX a pod gets channel 0 and no other")'
	render "${gate[@]}"
	is "$rule == []"
	render "${gate[@]}" --set admission.hostManaged.enabled=true --set resources.computeDomains.imex.isolation=channel
	is "$rule | length == 1"
	is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("-(resourceclaim|computedomains)"))] | length == 3 and
		all(.[]; tojson | contains("would include the channels of the others") and (contains("channel 0") | not))'
}

@test "nothing is rendered twice, and helm lint passes" {
	render "${gate[@]}"
	is 'map("\(.kind)/\(.metadata.namespace)/\(.metadata.name)") | length == (unique | length)'
	helm lint --strict --namespace nvidia-compute-domains --kube-version 1.37.0 "${image[@]}" "${gate[@]}" --set admission.hostManaged.enabled=true "$chart"
}

@test "the kubelet plugin's network policy allows queries of the hosts' IMEX" {
	render "${gate[@]}" --set kubeletPlugin.networkPolicy.enabled=true
	is '[kind("NetworkPolicy")[].spec.egress[].ports[].port] == [443, 6443, 50005]'
}
