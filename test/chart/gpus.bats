# SPDX-License-Identifier: Apache-2.0
# The chart's objects if GPUs are allocated: with ComputeDomains, and without.
load chart.bash

words+='
	def gpus: plugin.spec.containers[] | select(.name == "gpus");
	def gpu_env($n): gpus.env[] | select(.name == $n) | .value;'
on=(--set resources.gpus.enabled=true)
alone=("${on[@]}" --set resources.computeDomains.enabled=false)

@test "resources.gpus.enabled takes precedence over gpuResourcesEnabledOverride, and without both GPUs are off" {
	render
	is 'plugin.spec.containers | map(.name) == ["compute-domains"]'
	is 'kind("DeviceClass") | all(.metadata.name | startswith("compute-domain"))'
	render "${on[@]}"
	is 'plugin.spec.containers | map(.name) == ["compute-domains", "gpus"]'
	render --set gpuResourcesEnabledOverride=true
	is 'plugin.spec.containers | map(.name) == ["compute-domains", "gpus"]'
	render "${on[@]}" --set gpuResourcesEnabledOverride=false
	is 'plugin.spec.containers | map(.name) == ["compute-domains", "gpus"]'
	render --set resources.gpus.enabled=false --set gpuResourcesEnabledOverride=true
	is 'plugin.spec.containers | map(.name) == ["compute-domains"]'
	render --set resources.gpus=null --set gpuResourcesEnabledOverride=true
	is 'plugin.spec.containers | map(.name) == ["compute-domains", "gpus"]'
	render "${alone[@]}"
	is 'plugin.spec.containers | map(.name) == ["gpus"]'
}

@test "with GPUs only there are the plugin and its objects, and no objects for ComputeDomains" {
	render "${alone[@]}" --set kubeletPlugin.networkPolicy.enabled=true --set controller.networkPolicy.enabled=true --set metrics.podMonitor.enabled=true \
		--set metrics.prometheusRule.enabled=true --set metrics.dashboard.enabled=true --set featureGates.HostManagedIMEX=true \
		--set nvidiaDriverRoot=/run/nvidia/driver --api-versions security.openshift.io/v1
	is 'map("\(.kind) \(.metadata.name)") | sort == ["ClusterRole compute-domains-clusterrole-kubeletplugin",
		"ClusterRoleBinding compute-domains-clusterrole-binding-kubeletplugin", "ConfigMap compute-domains-dashboard",
		"DaemonSet compute-domains-kubelet-plugin", "DeviceClass gpu.nvidia.com", "DeviceClass mig.nvidia.com",
		"NetworkPolicy compute-domains-kubelet-plugin", "PodMonitor compute-domains-kubelet-plugin", "PrometheusRule compute-domains",
		"RoleBinding compute-domains-openshift-kubeletplugin", "ServiceAccount compute-domains-service-account-kubeletplugin",
		"ValidatingAdmissionPolicy compute-domains-events", "ValidatingAdmissionPolicy compute-domains-resourceslices",
		"ValidatingAdmissionPolicy compute-domains-waiting-pods",
		"ValidatingAdmissionPolicyBinding compute-domains-events", "ValidatingAdmissionPolicyBinding compute-domains-resourceslices",
		"ValidatingAdmissionPolicyBinding compute-domains-waiting-pods"]'
	is 'plugin.spec.volumes | map(.name) == ["plugins-registry", "plugins", "cdi", "driver-root-parent", "driver-root", "host-root"]'
	is '[named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[].resources[]] | index("computedomains") | not'
	is 'kind("NetworkPolicy")[0].spec.egress[0].ports | map(.port) == [443, 6443]'
	is '(kind("PrometheusRule")[0].spec.groups | map(.name)) == ["compute-domains-gpus"] and (kind("ConfigMap")[0].data | keys) == ["compute-domains-gpus.json"]'
}

@test "device classes: whole GPUs and MIG devices; if the API supports it, whole GPUs are also nvidia.com/gpu" {
	render "${on[@]}"
	is 'kind("DeviceClass") | map(select(.metadata.name | contains("compute-domain") | not)) | map({(.metadata.name): .spec.extendedResourceName}) | add ==
		{"gpu.nvidia.com": "nvidia.com/gpu", "mig.nvidia.com": null}'
	is 'named("DeviceClass"; "gpu.nvidia.com").spec.selectors[0].cel.expression | contains("device.driver == \u0027gpu.nvidia.com\u0027") and contains(".type == \u0027gpu\u0027")'
	is 'named("DeviceClass"; "mig.nvidia.com").spec.selectors[0].cel.expression | contains("device.driver == \u0027gpu.nvidia.com\u0027") and contains(".type == \u0027mig\u0027")'
	render "${on[@]}" --set resourceApiVersion=resource.k8s.io/v1beta1
	is 'named("DeviceClass"; "gpu.nvidia.com") | .apiVersion == "resource.k8s.io/v1beta1" and (.spec | has("extendedResourceName") | not)'
}

# failure: a device plugin offers nvidia.com/gpu on other nodes -> the device class can have another name or
#   none
@test "the class of whole GPUs has the extended resource name of the values, or none" {
	render "${on[@]}" --set resources.gpus.extendedResourceName=
	is 'named("DeviceClass"; "gpu.nvidia.com").spec | has("extendedResourceName") | not'
	render "${on[@]}" --set resources.gpus.extendedResourceName=example.com/gpu
	is 'named("DeviceClass"; "gpu.nvidia.com").spec.extendedResourceName == "example.com/gpu"'
	render --set resources.gpus=null --set gpuResourcesEnabledOverride=true
	is 'named("DeviceClass"; "gpu.nvidia.com").spec.extendedResourceName == "nvidia.com/gpu"'
	refused extendedResourceName "${on[@]}" --set resources.gpus.extendedResourceName='two words'
}

@test "the container finds driver, folders and hook at the paths of the values" {
	render "${on[@]}" --set nvidiaDriverRoot=/run/nvidia/driver/ --set altProcDevices=/run/nvidia/devices --set nvidiaCDIHookPath=/usr/bin/nvidia-cdi-hook \
		--set kubeletPlugin.containers.gpus.checkpointLayout=released --set logFormat=json
	is 'gpus.command == ["gpu-kubelet-plugin", "-v", "$(LOG_VERBOSITY)"]'
	is 'gpu_env("NVIDIA_DRIVER_ROOT") == "/run/nvidia/driver" and gpu_env("ALT_PROC_DEVICES_PATH") == "/alt-proc-devices" and
		gpu_env("NVIDIA_CDI_HOOK_PATH") == "/usr/bin/nvidia-cdi-hook" and gpu_env("CHECKPOINT_LAYOUT") == "released" and gpu_env("CDI_ROOT") == "/var/run/cdi" and
		gpu_env("LOGGING_FORMAT") == "json" and gpu_env("NVIDIA_VISIBLE_DEVICES") == "void" and gpu_env("NVIDIA_MIG_CONFIG_DEVICES") == "all"'
	is 'gpus.volumeMounts | map({(.name): .mountPath}) | add == {"plugins-registry": "/var/lib/kubelet/plugins_registry", plugins: "/var/lib/kubelet/plugins",
		cdi: "/var/run/cdi", "driver-root": "/driver-root", "host-root": "/host-root", "alt-proc-devices": "/alt-proc-devices"}'
	is 'plugin.spec.volumes[] | select(.name == "host-root") | .hostPath.path == "/"'
	is 'gpus.volumeMounts[] | select(.name == "host-root") | .readOnly'
	is 'gpus.volumeMounts[] | select(.name == "driver-root") | .readOnly and .mountPropagation == "HostToContainer"'
	is 'gpus.securityContext == {privileged: true, readOnlyRootFilesystem: true, runAsUser: 0}'
	is 'gpus.resources.requests | .cpu and .memory'
	# No variable that the program would ignore.
	is '[gpus.env[].name] - ["NAMESPACE", "IMAGE_NAME", "IMAGE_PULL_SECRETS", "IMAGE_PULL_POLICY", "SERVICE_ACCOUNT_NAME", "HOST_ROOT", "CONSUMABLE_SHARES"] == [gpus.env[].name]'
	render "${on[@]}" --set featureGates.NVMLDeviceHealthCheck=true --set kubeletPlugin.containers.gpus.additionalXidsToIgnore='13\,31'
	is 'gpu_env("ADDITIONAL_XIDS_TO_IGNORE") == "13,31" and gpu_env("FEATURE_GATES") == "NVMLDeviceHealthCheck=true,"'
	refused checkpointLayout "${on[@]}" --set kubeletPlugin.containers.gpus.checkpointLayout=newest
}

@test "a driver root that is the host's root folder is mounted once" {
	render "${on[@]}"
	is '[plugin.spec.volumes[].name] - ["host-root"] == [plugin.spec.volumes[].name]'
	is '[gpus.volumeMounts[].name] - ["host-root"] == [gpus.volumeMounts[].name]'
}

@test "by default containers get no socket of the host, and get the groups of device nodes" {
	render "${on[@]}"
	is '[gpus.env[].name] - ["GPU_IPC_SOCKETS", "GPU_ADDITIONAL_GIDS"] == [gpus.env[].name]'
	render "${on[@]}" --set gpuIpcSockets=true --set gpuAdditionalGids=false
	is 'gpu_env("GPU_IPC_SOCKETS") == "true" and gpu_env("GPU_ADDITIONAL_GIDS") == "false"'
	refused gpuIpcSockets "${on[@]}" --set gpuIpcSockets=maybe
}

@test "ports and probes follow the endpoints, and differ from those of the other container" {
	render "${on[@]}"
	is 'gpus | .startupProbe.httpGet == {port: 51516, path: "/healthz"} and .startupProbe.failureThreshold == 600 and
		.livenessProbe.httpGet == {port: 51516, path: "/healthz"} and .readinessProbe.httpGet == {port: 51516, path: "/readyz"}'
	is 'gpu_env("HEALTHCHECK_PORT") == "51516" and gpu_env("HTTP_ENDPOINT") == ":8080"'
	is '[plugin.spec.containers[].ports[]] | (map(.name) | length == (unique | length)) and (map(.containerPort) | length == (unique | length)) and all(.name | length <= 15)'
	render "${on[@]}" --set kubeletPlugin.containers.gpus.healthcheckPort=0 --set kubeletPlugin.metrics.enabled=false
	is 'gpus | has("ports") or has("startupProbe") or has("livenessProbe") or has("readinessProbe") | not'
	is '[gpu_env("HEALTHCHECK_PORT", "HTTP_ENDPOINT", "METRICS_PATH")] == []'
	render "${on[@]}" --set metrics.podMonitor.enabled=true
	is 'named("PodMonitor"; "compute-domains-kubelet-plugin").spec.podMetricsEndpoints | map(.port) == ["metrics", "gpu-metrics"] and all(.relabelings[0].targetLabel == "node")'
	is 'named("PodMonitor"; "compute-domains-controller").spec.podMetricsEndpoints | map(.port) == ["metrics"]'
}

@test "the user's environment takes precedence, and values that lack the container still render it" {
	render "${on[@]}" --set 'kubeletPlugin.containers.gpus.env[0].name=LOG_VERBOSITY' --set-string 'kubeletPlugin.containers.gpus.env[0].value=7'
	is '[gpu_env("LOG_VERBOSITY")] == ["7"]'
	local plain=$BATS_TEST_TMPDIR/plain
	render "${on[@]}"
	jq "$words gpus" <<<"$objects" >"$plain"
	render "${on[@]}" --set kubeletPlugin.containers.gpus=null
	jq "$words gpus" <<<"$objects" | cmp - "$plain"
}

# The program refuses the same gates, with the same error.
gates() { sed -n '/^int gpu_driver_check_gates/,/^}/s/.*{ GATE_[A-Z_]*, "\([A-Za-z]*\)" },/\1/p' "$checkout/src/gpu_plugin/gpu_driver.c"; }
# failure: a GPU feature gate is not implemented -> the chart refuses it
@test "GPU feature gates that this version does not implement are refused, with the error of the program" {
	local gate
	[[ $(gates | wc -l) -ge 5 ]]
	[[ $(gates | sort) == "$(sed -n 's/^{{- range $gate := list \(.*\) -}}$/\1/p' "$chart/templates/_gpus.tpl" | tr -d '"' | tr ' ' '\n' | sort)" ]]
	for gate in $(gates); do
		refused "feature gate $gate is on, but this version does not implement it for GPUs: switch it off" "${on[@]}" --set featureGates.$gate=true
	done
	render "${on[@]}" --set featureGates.DynamicMIG=false
	render --set featureGates.DynamicMIG=true
	refused "this driver does not share GPUs by consumable capacity yet" "${on[@]}" --set consumableShares=4
	render "${on[@]}" --set consumableShares=disabled
}

@test "roles and policies restrict both programs of the plugin's account to their node, their drivers and their names" {
	render "${on[@]}"
	is '[named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules[] | select(.verbs - ["get", "list", "watch"] != []) | .resources[]] == ["resourceslices", "events", "pods"]'
	is 'named("ClusterRole"; "compute-domains-clusterrole-kubeletplugin").rules | all(.resources != ["pods"] or .verbs == ["patch"]) and
		(.[] | select(.resources == ["nodes"]) | .verbs == ["get", "list", "watch"])'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-resourceslices").spec.validations |
		any(.expression | contains("s.driver in [\u0027compute-domain.nvidia.com\u0027, \u0027gpu.nvidia.com\u0027]")) and any(.expression | contains("s.?nodeName.orValue(\u0027\u0027) == variables.node"))'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-events").spec.validations | any(.expression | contains("in [\u0027compute-domain-kubelet-plugin\u0027, \u0027gpu-kubelet-plugin\u0027]"))'
	render "${alone[@]}"
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-resourceslices").spec.validations | any(.expression | contains("s.driver == \u0027gpu.nvidia.com\u0027"))'
}

@test "the admission policy for configurations of GPUs is optional, off by default, and fails open" {
	local rules='[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("-gpu-"))]'
	render "${on[@]}"
	is "$rules == []"
	render --set admission.gpus.enabled=true
	is "$rules == []"
	[[ $(notes --set admission.gpus.enabled=true) == *"admission.gpus.enabled: it concerns GPUs"* ]]
	render "${alone[@]}" --set admission.gpus.enabled=true
	is "$rules"' | map(.metadata.name) == ["compute-domains-gpu-resourceclaims", "compute-domains-gpu-resourceclaimtemplates"] and
		all(.[].spec; .failurePolicy == "Ignore" and .matchConstraints.resourceRules[0].apiVersions == ["v1", "v1beta2", "v1beta1"] and
		.matchConstraints.resourceRules[0].operations == ["CREATE"])'
	is '[kind("ValidatingAdmissionPolicyBinding")[] | select(.metadata.name | test("-gpu-")).spec.validationActions] == [["Deny"], ["Deny"]]'
	is 'map("\(.kind)/\(.metadata.namespace)/\(.metadata.name)") | length == (unique | length)'
	helm lint --strict --namespace nvidia-compute-domains --kube-version 1.37.0 "${image[@]}" "${on[@]}" --set admission.gpus.enabled=true "$chart"
}

# It has the plugin's errors, and refuses nothing that the plugin accepts.
@test "the admission policy for configurations of GPUs has the plugin's errors, and follows the feature gates" {
	local sentence
	render "${on[@]}" --set admission.gpus.enabled=true
	for sentence in 'supported GPU sharing strategies: TimeSlicing, MPS' 'supported time-slice intervals: Default, Short, Medium, Long' \
		"cannot use MpsConfig with the 'TimeSlicing' strategy" 'is not one of the driver gpu.nvidia.com' '"TimeSlicingSettings" feature gate is not enabled' \
		'"MPSSupport" feature gate is not enabled'; do
		is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("-gpu-")).spec.validations | any(.message // .messageExpression | contains($s))] == [true, true]' --arg s "$sentence"
	done
	render "${on[@]}" --set admission.gpus.enabled=true --set featureGates.TimeSlicingSettings=true
	is '[kind("ValidatingAdmissionPolicy")[] | select(.metadata.name | test("-gpu-")) | tojson | contains("TimeSlicingSettings")] == [false, false]'
}

@test "maskNvidiaDriverParams reaches the processes of both plugins that query NVML" {
	render "${on[@]}" --set maskNvidiaDriverParams=true
	is '[plugin.spec.containers[] | .env[] | select(.name == "MASK_NVIDIA_DRIVER_PARAMS") | .value] == ["true", "true"]'
	render "${on[@]}"
	is '[plugin.spec.containers[] | .env[] | select(.name == "MASK_NVIDIA_DRIVER_PARAMS")] == []'
}

@test "the notes name what is installed, and warn of a device plugin" {
	[[ $(notes "${on[@]}") == *"Disable the NVIDIA device plugin"*"DevicePluginActive"* ]]
	[[ $(notes "${alone[@]}") == *"without ComputeDomains"*"rollout status daemonset/compute-domains-kubelet-plugin"* ]]
	notes_lack gpu.nvidia.com
	[[ $(notes "${on[@]}" --set kubeletPlugin.containers.gpus.additionalXidsToIgnore=13) == *"additionalXidsToIgnore: no XID is watched without"* ]]
	[[ $(notes --set gpuResourcesEnabledOverride=true --set resources.gpus.enabled=false) == *"gpuResourcesEnabledOverride: resources.gpus.enabled=false takes precedence"* ]]
}
