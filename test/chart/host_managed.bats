# SPDX-License-Identifier: Apache-2.0
# What the chart makes when the hosts run nvidia-imex themselves.
load chart.bash

gate=(--set featureGates.HostManagedIMEX=true)
waiting=(--set resources.computeDomains.imex.mode=hostManaged --set featureGates.HostManagedIMEXDaemon=true)

# in_both_modes CMD...: with the objects of each of the two.
in_both_modes() {
	render "${gate[@]}"
	"$@"
	render "${waiting[@]}"
	"$@"
}

@test "default channel DeviceClass exists, daemon DeviceClass does not exist" {
	in_both_modes is '[kind("DeviceClass")[].metadata.name] == ["compute-domain-default-channel.nvidia.com"]'
}

@test "daemon RBAC and service account do not exist, nor anything else of the daemons" {
	in_both_modes is '[.[] | "\(.kind) \(.metadata.name)" | select(contains("daemon"))] | unique == [
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
	render "${waiting[@]}"
	is '[controller, plugin] | all(env("FEATURE_GATES") == "HostManagedIMEXDaemon=true," and env("IMEX_MODE") == "hostManaged")'
}

@test "the gate needs no second value, and not the webhook" {
	render "${gate[@]}"
	is '[kind("ValidatingWebhookConfiguration"), kind("Service")] == [[], []]'
	render --set-string featureGates.HostManagedIMEX=true
	is '[kind("DeviceClass")[].metadata.name] == ["compute-domain-default-channel.nvidia.com"]'
	# whatever the user says of the gates that it forces off
	render "${gate[@]}" --set featureGates.IMEXDaemonsWithDNSNames=false
	render "${gate[@]}" --set featureGates.IMEXDaemonsWithDNSNames=true --set featureGates.ComputeDomainCliques=true
	render "${gate[@]}" --set featureGates.AllBeta=false --set featureGates.ComputeDomainCliques=true
}

@test "the controller may take down what the other mode made, and make none of it" {
	in_both_modes is '[named("Role"; "compute-domains-role-controller").rules[] |
		select(.resources == ["daemonsets"] or .resources == ["computedomaincliques"]) | .verbs] |
		length == 2 and all(. == ["get", "list", "watch", "patch", "delete"])'
	is 'named("Role"; "compute-domains-role-controller").rules[] | select(.resources == ["pods"]) | .verbs == ["get", "list", "watch", "delete"]'
	is 'named("ClusterRole"; "compute-domains-clusterrole-controller").rules[] | select(.resources == ["resourceclaimtemplates"]) |
		.verbs | contains(["create", "delete"])'
}

@test "a kubelet plugin may patch pods in host-managed mode only, and a policy leaves it its own" {
	in_both_modes is 'named("Role"; "compute-domains-role-kubeletplugin") | .metadata.namespace == "nvidia-compute-domains" and
		.rules == [{apiGroups: [""], resources: ["pods"], verbs: ["patch"]}]'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-plugin-pods").spec | .failurePolicy == "Fail" and
		(.matchConditions[0].expression | contains("system:serviceaccount:nvidia-compute-domains:compute-domains-service-account-kubeletplugin"))'
	is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-plugin-pods").spec.validationActions == ["Deny"]'
	render
	is '[.[] | select(.metadata.name | test("role-kubeletplugin|plugin-pods")) | select(.kind != "ClusterRole")] == []'
}

@test "the controller finds the kubelet plugin's pods by their labels, and not its own" {
	local selected='(controller | env("KUBELET_PLUGIN_SELECTOR") | split(",") | map(split("=") | {(.[0]): .[1]}) | add) as $s'
	in_both_modes is "$selected | plugin.metadata.labels == \$s and (controller.metadata.labels | contains(\$s) | not)"
	render "${gate[@]}" --set selectorLabelsOverride.tier=node
	is "$selected | plugin.metadata.labels == \$s and (controller.metadata.labels | contains(\$s) | not)"
	is "$selected | \$s.tier == \"node\""
	# Who overrides all that tells them apart gets what he asked for.
	render "${gate[@]}" --set selectorLabelsOverride.app=mine
	is "$selected | plugin.metadata.labels == \$s and \$s.app == \"mine\""
	render
	is 'controller | [env("KUBELET_PLUGIN_SELECTOR")] == []'
}

@test "settings that contradict each other are refused in the words of the programs" {
	refused "feature gate HostManagedIMEX=true and resources.computeDomains.imex.mode=hostManaged (IMEX_MODE) are two different host-managed modes" \
		"${gate[@]}" "${waiting[@]}"
	refused "resources.computeDomains.imex.mode=hostManaged (IMEX_MODE) requires feature gate HostManagedIMEXDaemon=true, which is false" \
		--set resources.computeDomains.imex.mode=hostManaged
	refused "ComputeDomainCliques cannot work without" "${waiting[@]}" --set featureGates.IMEXDaemonsWithDNSNames=false
	! grep -q "resources.computeDomains" "$checkout/src/model/mode.c" || false # the chart's sentences are the programs', after that prefix
	local sentence
	while read -r sentence; do
		tr -d '"\n' <"$checkout/src/model/mode.c" | tr -s ' ' | grep -qF "$sentence"
	done <<-'END'
		are two different host-managed modes: the gate checks the fabric and does not wait for the host's IMEX, the other waits for it; set one of them
		requires feature gate HostManagedIMEXDaemon=true, which is false
		needs IMEX agents (imex.agents=true), which run one IMEX domain for all ComputeDomains of a fabric: set that, leave IMEX to the hosts (feature gate HostManagedIMEX=true, or imex.mode=hostManaged), or use imex.isolation=domain
	END
}

@test "the admission rule for claims is optional, off by default, and never stands in the way" {
	in_both_modes is '[kind("ValidatingAdmissionPolicy")[].metadata.name | select(test("-resourceclaim"))] == []'
	render "${gate[@]}" --set admission.hostManaged.enabled=true
	is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("-resourceclaim"))] | length == 2 and
		all(.spec | .failurePolicy == "Ignore" and .matchConstraints.resourceRules[0].apiVersions == ["v1", "v1beta2", "v1beta1"] and
		.matchConstraints.resourceRules[0].operations == ["CREATE"])'
	is 'map("\(.kind)/\(.metadata.namespace)/\(.metadata.name)") | length == (unique | length)'
	render --set admission.hostManaged.enabled=true
	is '[kind("ValidatingAdmissionPolicy")[].metadata.name | select(test("-resourceclaim"))] == []'
}

@test "the admission rule refuses ComputeDomains too, where their claim templates would be refused" {
	local rule='[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name == "compute-domains-computedomains")]'
	render "${gate[@]}" --set admission.hostManaged.enabled=true
	is "$rule"' | length == 1 and (.[0].spec | .failurePolicy == "Ignore" and .matchConstraints.resourceRules == [{
		apiGroups: ["resource.nvidia.com"], apiVersions: ["v1beta1"], operations: ["CREATE"], resources: ["computedomains"]}])'
	is 'named("ValidatingAdmissionPolicyBinding"; "compute-domains-computedomains").spec.validationActions == ["Deny"]'
	is 'tojson | contains("with HostManagedIMEX a pod gets channel 0 and no other")'
	# The other mode has an answer to any allocationMode, but for the channels of all others.
	render "${waiting[@]}" --set admission.hostManaged.enabled=true
	is "$rule == []"
	render "${gate[@]}"
	is "$rule == []"
	local mode
	for mode in gate waiting; do
		local -n flags=$mode
		render "${flags[@]}" --set admission.hostManaged.enabled=true --set resources.computeDomains.imex.isolation=channel
		is "$rule | length == 1"
		is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("-(resourceclaim|computedomains)"))] | length == 3 and
			all(.[]; tojson | contains("all of them would be those of all others") and (contains("channel 0") | not))'
	done
}

@test "both modes render nothing twice, and lint" {
	in_both_modes is 'map("\(.kind)/\(.metadata.namespace)/\(.metadata.name)") | length == (unique | length)'
	helm lint --strict --namespace nvidia-compute-domains --kube-version 1.37.0 "${image[@]}" "${gate[@]}" --set admission.hostManaged.enabled=true "$chart"
}

@test "the kubelet plugin's network policy lets it ask the hosts' IMEX" {
	render "${gate[@]}" --set kubeletPlugin.networkPolicy.enabled=true
	is '[kind("NetworkPolicy")[].spec.egress[].ports[].port] == [443, 6443, 50005]'
}
