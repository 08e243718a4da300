# SPDX-License-Identifier: Apache-2.0
# The objects that the chart renders, and the values that it refuses.
load chart.bash

# failure: the chart is installed with default values -> every object renders exactly once
@test "the default values render every object, and nothing twice" {
	render
	is 'map(.kind) | unique == ["ClusterRole", "ClusterRoleBinding", "ComputeDomain", "DaemonSet", "Deployment", "DeviceClass",
		"Job", "NetworkPolicy", "Pod", "PodDisruptionBudget", "Role", "RoleBinding", "ServiceAccount", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding"]'
	is 'map(select(.kind == "Pod" or .kind == "ComputeDomain")) | all(.metadata.annotations["helm.sh/hook"] == "test")'
	is 'map("\(.kind)/\(.metadata.namespace)/\(.metadata.name)") | length == (unique | length)'
	is 'all(.[]; .metadata.labels["app.kubernetes.io/instance"] == "compute-domains")'
}

@test "helm lint reports nothing" {
	helm lint --strict --namespace nvidia-compute-domains --kube-version 1.37.0 "${image[@]}" "$chart"
}

# The kubectl plugin reads the namespace from these conditions (admission_object_driver() in src/cli/doctor_kinds.c).
@test "in every mode, policies name the driver's namespace" {
	local mode modes=("" "--set resources.computeDomains.imex.mode=hostManaged" "--set serviceAccount.create=false"
		"--set resources.computeDomains.imex.isolation=channel" "--set resources.gpus.enabled=true --set resources.computeDomains.enabled=false")
	for mode in "${modes[@]}"; do
		# shellcheck disable=SC2086 # several arguments
		render $mode --set namespaceOverride=elsewhere
		is 'kind("ValidatingAdmissionPolicy") | map(.spec.matchConditions[]? | select(.name == "is-our-controller" or .name == "is-our-kubelet-plugin") |
			.expression | [scan("\u0027system:serviceaccount:([^:\u0027]+):")[0]] | unique) | length > 0 and all(. == ["elsewhere"])'
	done
}

# failure: the chart is upgraded -> labels and selectors keep their names
@test "image and pod labels keep their names" {
	render
	is '[controller, plugin] | all(.spec.containers[0].image == "compute-domains/compute-domains:v0.2.0")'
	is 'controller | env("IMAGE_NAME") == "compute-domains/compute-domains:v0.2.0"'
	is 'controller.metadata.labels | .app == "compute-domain-controller" and .["compute-domains-component"] == "controller"'
	is 'plugin.metadata.labels | .app == "compute-domain-kubelet-plugin" and .["compute-domains-component"] == "kubelet-plugin"'
	is 'controller.spec.containers[0].command == ["compute-domain-controller", "-v", "$(LOG_VERBOSITY)"]'
	is 'plugin.spec.containers[0].command == ["compute-domain-kubelet-plugin", "-v", "$(LOG_VERBOSITY)"]'
	is 'plugin.spec.initContainers[0].command == ["compute-domain-kubelet-plugin", "prestart"]'
	render --set image.repository=example.org/cd --set image.tag=test
	is '[controller, plugin] | all(.spec.containers[0].image == "example.org/cd:test")'
	is 'controller | env("IMAGE_NAME") == "example.org/cd:test"'
}

# failure: a controller fails -> there is a second replica
# failure: the controller runs on a GPU node -> it is unprivileged and inherits no GPUs
@test "the controller is highly available and unprivileged" {
	render
	is 'named("Deployment"; "compute-domains-controller").spec | .replicas == 2 and (has("strategy") | not)'
	is 'controller.spec.priorityClassName == "system-cluster-critical"'
	is 'controller | env("LEADER_ELECTION_ENABLED") == "true"'
	is 'controller.spec.securityContext | .runAsNonRoot and .runAsUser == 65532 and .seccompProfile.type == "RuntimeDefault"'
	is 'controller.spec.containers[0].securityContext | .readOnlyRootFilesystem and .allowPrivilegeEscalation == false and
		.capabilities.drop == ["ALL"]'
	is 'controller.spec.containers[0] | .livenessProbe.httpGet.path == "/healthz" and .readinessProbe.httpGet.path == "/readyz"'
	is 'named("PodDisruptionBudget"; "compute-domains-controller").spec.maxUnavailable == 1'
}

# failure: the cluster has Windows nodes -> the controller and the Job of the uninstallation run only on Linux
@test "the controller and the Job of the uninstallation run only on Linux" {
	local pods='[controller, (kind("Job")[].spec.template)]'
	render
	is "$pods"' | length == 2 and all(.spec.nodeSelector == {"kubernetes.io/os": "linux"})'
	render --set controller.nodeSelector.a=b
	is "$pods"' | all(.spec.nodeSelector == {a: "b", "kubernetes.io/os": "linux"})'
}

# failure: a NoExecute taint is set -> the plugin stays, with any tolerations in the values
@test "the plugin tolerates every NoExecute taint, with any tolerations in the values" {
	local stay='{"operator": "Exists", "effect": "NoExecute"}'
	render
	is 'plugin.spec.tolerations | length == 3 and .[-1] == $stay' --argjson stay "$stay"
	render --set-json 'kubeletPlugin.tolerations=[]'
	is 'plugin.spec.tolerations == [$stay]' --argjson stay "$stay"
	render --set-json 'kubeletPlugin.tolerations=null'
	is 'plugin.spec.tolerations == [$stay]' --argjson stay "$stay"
	render --set-json 'kubeletPlugin.tolerations=[{"key": "a", "operator": "Exists"}]'
	is 'plugin.spec.tolerations == [{key: "a", operator: "Exists"}, $stay]' --argjson stay "$stay"
	render --set-json "kubeletPlugin.tolerations=[$stay]"
	is 'plugin.spec.tolerations == [$stay]' --argjson stay "$stay"
}

@test "the plugins get their node selector, and enough time to wait for the pods that use them" {
	render --set kubeletPlugin.nodeSelector.a=b --set resources.gpus.enabled=true
	is 'plugin.spec as $s | $s.terminationGracePeriodSeconds == 3600 and ($s.containers | length == 2) and
		all($s.containers[]; .env[] | select(.name == "POD_NODE_SELECTOR") | .value | fromjson |
			.nodeSelector == $s.nodeSelector and .nodeSelectorTerms == $s.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms)'
	render --set kubeletPlugin.affinity=null
	is 'plugin | env("POD_NODE_SELECTOR") | fromjson == {nodeSelector: {}, nodeSelectorTerms: []}'
}

@test "containers that need root request it, because the image's default user is not root" {
	render
	is '[plugin.spec.initContainers[0], plugin.spec.containers[0]] | all(.securityContext.runAsUser == 0)'
	render --set kubeletPlugin.podSecurityContext.runAsUser=7 --set kubeletPlugin.containers.computeDomains.securityContext.runAsUser=8
	is 'plugin.spec.initContainers[0].securityContext | has("runAsUser") | not'
	is 'plugin.spec.containers[0].securityContext.runAsUser == 8'
}

@test "the chart has the version of the programs" {
	local version
	version=$(<"$checkout/VERSION")
	[[ $(sed -n 's/^version: //p' "$chart/Chart.yaml") == "$version" && $(sed -n 's/^appVersion: //p' "$chart/Chart.yaml") == "$version" ]]
	grep -qF "## [$version] - " "$checkout/CHANGELOG.md"
}

@test "a single controller is replaced without an overlap and has no disruption budget" {
	render --set controller.replicas=1 --set controller.leaderElection.enabled=false
	is 'named("Deployment"; "compute-domains-controller").spec.strategy.type == "Recreate"'
	is 'kind("PodDisruptionBudget") == []'
	is 'kind("Role") | map(select(.metadata.namespace != "kube-node-lease")) | all(.rules | all(.apiGroups != ["coordination.k8s.io"]))'
}

@test "the controller's probes follow its endpoint" {
	render --set controller.metrics.httpEndpoint=:9999
	is 'controller.spec.containers[0].ports[0].containerPort == 9999'
	render --set controller.metrics.httpEndpoint=127.0.0.1:9999
	is 'controller.spec.containers[0] | has("livenessProbe") or has("readinessProbe") | not'
	render --set controller.metrics.enabled=false
	is 'controller.spec.containers[0] | has("livenessProbe") or has("readinessProbe") | not'
	is 'controller | [env("HTTP_ENDPOINT")] == []'
}

@test "every container requests cpu and memory, also the daemons" {
	render
	is '[controller, plugin] | all(.spec | .containers + (.initContainers // []) | all(.resources.requests | .cpu and .memory))'
	is 'controller | env("CD_DAEMON_RESOURCES") | fromjson == {requests: {cpu: "10m", memory: "24Mi"}}'
	is 'controller | env("CD_DAEMON_PRIORITY_CLASS") == "system-node-critical"'
}

@test "the kubelet plugin finds the driver at the path of the values" {
	render
	is 'plugin.spec.volumes | map({(.name): .hostPath.path}) | add == {"plugins-registry": "/var/lib/kubelet/plugins_registry",
		plugins: "/var/lib/kubelet/plugins", cdi: "/var/run/cdi", "driver-root": "/", "driver-root-parent": "/",
		"channel-nodes": "/dev/nvidia-caps-imex-channels"}'
	render --set nvidiaDriverRoot=/run/nvidia/driver/ --set altProcDevices=/run/nvidia/devices
	is 'plugin.spec.volumes | map({(.name): .hostPath.path}) | add |
		.["driver-root"] == "/run/nvidia/driver" and .["driver-root-parent"] == "/run/nvidia" and
		.["alt-proc-devices"] == "/run/nvidia/devices"'
	is 'plugin | env("NVIDIA_DRIVER_ROOT") == "/run/nvidia/driver"'
	is 'plugin | env("ALT_PROC_DEVICES_PATH") == "/alt-proc-devices"'
	is 'plugin.spec.containers[0].volumeMounts[] | select(.name == "driver-root") | .readOnly and .mountPropagation == "HostToContainer"'
}

@test "the kubelet plugin creates device nodes of channels on the host, unless the host runs IMEX for one domain" {
	render
	is 'plugin.spec.containers[0].volumeMounts[] | select(.name == "channel-nodes") | .mountPath == "/channel-nodes" and (.readOnly | not)'
	is 'plugin | env("CHANNEL_NODES") == "/channel-nodes"'
	render --set featureGates.HostManagedIMEX=true
	is 'plugin.spec | .volumes + .containers[0].volumeMounts | all(.name != "channel-nodes")'
	is 'plugin.spec.containers[0].env | all(.name != "CHANNEL_NODES")'
	render --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.isolation=channel
	is 'plugin | env("CHANNEL_NODES") == "/channel-nodes"'
	render --set resources.computeDomains.enabled=false --set resources.gpus.enabled=true --set gpuResourcesEnabledOverride=true
	is 'plugin.spec.volumes | all(.name != "channel-nodes")'
}

@test "the kubelet plugin finds the host's nvidia-imex at the path of the values" {
	render
	is 'plugin | env("IMEX_HOST_SOCKET_PATH") == "/etc/nvidia-imex/imex_ctrl.sock" and env("IMEX_HOST_PROBE_INTERVAL") == "30s"'
	is 'plugin.spec.volumes | all(.name != "host-imex")'
	render --set featureGates.HostManagedIMEX=true --set resources.computeDomains.imex.hostSocketPath=/srv/imex/ctl.sock \
		--set resources.computeDomains.imex.hostProbeInterval=5s --set nvidiaDriverRoot=/run/nvidia/driver
	is 'plugin | env("IMEX_HOST_SOCKET_PATH") == "/srv/imex/ctl.sock" and env("IMEX_HOST_PROBE_INTERVAL") == "5s"'
	is 'plugin.spec.volumes[] | select(.name == "host-imex") | .hostPath.path == "/srv/imex"'
	is 'plugin.spec.containers[0].volumeMounts[] | select(.name == "host-imex") | .mountPath == "/srv/imex" and .readOnly'
	# The driver root contains it then, and nothing must be created in the host's /etc, which may be read-only.
	render --set featureGates.HostManagedIMEX=true
	is 'plugin.spec | .volumes + .containers[0].volumeMounts | all(.name != "host-imex")'
	is 'plugin.spec.containers[0].env[] | select(.name == "POD_NAME") | .valueFrom.fieldRef.fieldPath == "metadata.name"'
}

# failure: nodes have no nvidia-imex of the host -> the value hostProbeInterval=0 switches the queries off
@test "the host's nvidia-imex is not queried if the interval is 0, as a number or as text" {
	render --set resources.computeDomains.imex.hostProbeInterval=0
	is 'plugin | env("IMEX_HOST_PROBE_INTERVAL") == "0"'
	render --set-string resources.computeDomains.imex.hostProbeInterval=0
	is 'plugin | env("IMEX_HOST_PROBE_INTERVAL") == "0"'
	render --set-string resources.computeDomains.imex.hostProbeInterval=
	is 'plugin | env("IMEX_HOST_PROBE_INTERVAL") == "30s"'
	refused hostProbeInterval --set resources.computeDomains.imex.hostProbeInterval=5
	render
	is 'plugin | [env("ADDITIONAL_NAMESPACES")] == []'
}

# failure: the plugin's health port is changed -> its probes use the new port
@test "the kubelet plugin's probes follow its port" {
	render
	is 'plugin | env("HEALTHCHECK_PORT") == "51515"'
	is 'plugin.spec.containers[0] | .startupProbe.httpGet == {port: 51515, path: "/healthz"} and .startupProbe.failureThreshold == 600
		and .livenessProbe.httpGet == {port: 51515, path: "/healthz"} and .readinessProbe.httpGet == {port: 51515, path: "/readyz"}'
	for port in 0 -1; do
		render --set kubeletPlugin.containers.computeDomains.healthcheckPort="$port"
		is 'plugin.spec.containers[0] | has("startupProbe") or has("livenessProbe") or has("readinessProbe") | not'
		is 'plugin | [env("HEALTHCHECK_PORT")] == []'
	done
}

@test "both programs name the port of their metrics" {
	render
	is '[controller, plugin] | map(.spec.containers[0].ports[] | select(.name == "metrics") | .containerPort) == [8080, 8081]'
	render --set kubeletPlugin.metrics.computeDomainHttpEndpoint=127.0.0.1:9999
	is 'plugin.spec.containers[0].ports | map(.name) == ["healthcheck"]'
	render --set kubeletPlugin.metrics.enabled=false --set kubeletPlugin.containers.computeDomains.healthcheckPort=0
	is 'plugin.spec.containers[0] | has("ports") | not'
}

@test "the controller, not the plugin, writes the clique label" {
	render
	is 'controller | env("GPU_CLIQUE_LABEL_ENABLED") == "true"'
	is 'plugin | [env("GPU_CLIQUE_LABEL_ENABLED")] == []'
	render --set kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled=false
	is 'controller | env("GPU_CLIQUE_LABEL_ENABLED") == "false"'
}

@test "verbosity and format of the logs reach both programs" {
	render
	is '[controller, plugin] | map(env("LOGGING_FORMAT")) == ["text", "text"]'
	render --set logFormat=json
	is '[controller, plugin] | map(env("LOGGING_FORMAT")) == ["json", "json"]'
	refused "logFormat" --set logFormat=klog
}

@test "the notes show the label of a namespace for clusters that enforce Pod Security" {
	notes --namespace some-place | grep -F "helm test compute-domains --namespace some-place"
	notes --namespace some-place | grep -F "kubectl label namespace some-place pod-security.kubernetes.io/enforce=privileged"
}

@test "feature gates reach both programs" {
	render --set featureGates.ComputeDomainCliques=false --set featureGates.CrashOnNVLinkFabricErrors=true
	is '[controller, plugin] | all(env("FEATURE_GATES") == "ComputeDomainCliques=false,CrashOnNVLinkFabricErrors=true,")'
	render --set featureGates=null
	is '[controller, plugin] | all([env("FEATURE_GATES")] == [])'
}

@test "the user's environment takes precedence over the chart's" {
	render --set 'controller.containers.computeDomain.env[0].name=MAX_NODES_PER_IMEX_DOMAIN' \
		--set-string 'controller.containers.computeDomain.env[0].value=36'
	is 'controller | [env("MAX_NODES_PER_IMEX_DOMAIN")] == ["36"]'
}

# failure: an earlier installation was in another namespace -> its daemons keep roles and an account there
#   [go]
@test "additional namespaces get roles and daemon accounts, once each" {
	render --set 'controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES' \
		--set 'controller.containers.computeDomain.env[0].value=old\, older \,old\,nvidia-compute-domains'
	local namespaces='["nvidia-compute-domains", "old", "older"]'
	is '[kind("ServiceAccount")[] | select(.metadata.name == "compute-domain-daemon-service-account") | .metadata.namespace] == $n' \
		--argjson n "$namespaces"
	is '[kind("ServiceAccount")[] | select(.metadata.name == "compute-domain-daemon") | .metadata.namespace] == ["nvidia-compute-domains"]'
	is '[kind("Role")[] | select(.metadata.name == "compute-domains-role-controller") | .metadata.namespace] == $n' --argjson n "$namespaces"
	is '[kind("RoleBinding")[] | select(.metadata.name == "compute-domain-daemon-role-binding") | .subjects[0].namespace] == $n' \
		--argjson n "$namespaces"
	is 'plugin | env("ADDITIONAL_NAMESPACES") == "old,older"'
	is 'named("ValidatingAdmissionPolicy"; "compute-domains-go-daemon-pods").spec.matchConditions[0].expression |
		contains("system:serviceaccount:older:compute-domain-daemon-service-account")'
	is '[controller, plugin] | map(env("ADDITIONAL_NAMESPACES") | split("[, ]+"; "") | sort) | .[1] == ["old", "older"] and .[0] - .[1] == ["nvidia-compute-domains"]'
	render
	is 'plugin | [env("ADDITIONAL_NAMESPACES")] == []'
}

# failure: the image needs a pull secret -> daemons have it too
@test "pull secrets reach the pods and the daemons" {
	render --set 'imagePullSecrets[0].name=one' --set 'imagePullSecrets[1].name=two'
	is '[controller, plugin] | all(.spec.imagePullSecrets == [{name: "one"}, {name: "two"}])'
	is 'controller | env("CD_DAEMON_IMAGE_PULL_SECRET_NAMES") == "one,two"'
	render --set-string 'imagePullSecrets[0].name=123456'
	is 'controller | env("CD_DAEMON_IMAGE_PULL_SECRET_NAMES") == "123456"'
}

# failure: the release replaces another chart's -> its names can stay
@test "names can be those of another chart's release" {
	render --set nameOverride=dra-driver-nvidia-gpu
	is 'named("Deployment"; "dra-driver-nvidia-gpu-controller").spec.selector.matchLabels ==
		{"dra-driver-nvidia-gpu-component": "controller"}'
	is 'named("DaemonSet"; "dra-driver-nvidia-gpu-kubelet-plugin").spec.selector.matchLabels ==
		{"dra-driver-nvidia-gpu-component": "kubelet-plugin"}'
	is 'named("Deployment"; "dra-driver-nvidia-gpu-controller").spec.template.spec.containers[0].env[] |
		select(.name == "LEADER_ELECTION_LEASE_LOCK_NAME") | .value == "dra-driver-nvidia-gpu-controller"'
	render --set namespaceOverride=elsewhere
	is '[.[] | .metadata.namespace // empty] | unique == ["elsewhere", "kube-node-lease"]'
	render --set selectorLabelsOverride.app=mine
	is 'named("DaemonSet"; "compute-domains-kubelet-plugin").spec | .selector.matchLabels == {app: "mine"} and
		.template.metadata.labels.app == "mine"'
}

# failure: the cluster claims versions of DeviceClass that it does not serve -> the chart uses the newest
#   served one
@test "device classes are written in the newest version that the cluster offers" {
	render
	is 'kind("DeviceClass") | map(.apiVersion) | unique == ["resource.k8s.io/v1"]'
	render --set resourceApiVersion=resource.k8s.io/v1beta1
	is 'kind("DeviceClass") | map(.apiVersion) | unique == ["resource.k8s.io/v1beta1"]'
	is '[kind("DeviceClass")[].metadata.name] == ["compute-domain-daemon.nvidia.com", "compute-domain-default-channel.nvidia.com"]'
}

# failure: network policies are enabled -> the driver's pods can still reach the API server
@test "network policies, if enabled, allow the API server only" {
	render --set controller.networkPolicy.enabled=true --set kubeletPlugin.networkPolicy.enabled=true
	is 'kind("NetworkPolicy") | map(select(.spec.egress).metadata.name) == ["compute-domains-controller", "compute-domains-kubelet-plugin"]'
	is 'kind("NetworkPolicy") | map(select(.spec.egress)) | all(.spec | .policyTypes == ["Egress"] and [.egress[].ports[].port] == [443, 6443])'
}

# failure: a pod connects to the ports of nvidia-imex -> the network policy allows daemons only [tenants]
@test "only the daemons, ours and the Go driver's, reach the ports of nvidia-imex" {
	render --set 'controller.containers.computeDomain.env[0].name=ADDITIONAL_NAMESPACES' --set 'controller.containers.computeDomain.env[0].value=old'
	is 'kind("NetworkPolicy") | map([.metadata.name, .metadata.namespace]) | sort == [["compute-domains-daemon", "nvidia-compute-domains"],
		["compute-domains-go-daemon", "nvidia-compute-domains"], ["compute-domains-go-daemon", "old"]]'
	is 'kind("NetworkPolicy") | all(.spec.policyTypes == ["Ingress"] and (.spec | has("egress") | not))'
	# Each of our IMEX domains has its own port.
	local ports
	ports=$(sed -n 's/.*ASSIGNMENT_PORT_FIRST = \([0-9]*\), ASSIGNMENT_PORT_LAST = \([0-9]*\).*/[\1, \2]/p' "$checkout/src/rules/assignment.h")
	is 'named("NetworkPolicy"; "compute-domains-daemon").spec | .podSelector == {matchLabels: {"app.kubernetes.io/component": "compute-domain-daemon"}} and
		.ingress == [{from: [{podSelector: .podSelector}], ports: [{protocol: "TCP", port: 50005}, {protocol: "TCP", port: $p[0], endPort: $p[1]}]}]' --argjson p "$ports"
	# Our daemons also have the label of a ComputeDomain while they serve one. Daemons of the Go driver may not be their peers.
	local of_go='{"matchExpressions": [{"key": "resource.nvidia.com/computeDomain", "operator": "Exists"},
		{"key": "app.kubernetes.io/component", "operator": "NotIn", "values": ["compute-domain-daemon"]}]}'
	is 'kind("NetworkPolicy") | map(select(.metadata.name == "compute-domains-go-daemon").spec) | all(.podSelector == $d and .ingress == [{
		from: [{podSelector: $d, namespaceSelector: {matchExpressions: [
			{key: "kubernetes.io/metadata.name", operator: "In", values: ["nvidia-compute-domains", "old"]}]}}],
		ports: [{protocol: "TCP", port: 50000}, {protocol: "TCP", port: 50005}]}])' --argjson d "$of_go"
	grep -qF '#define CD_LABEL_COMPONENT "app.kubernetes.io/component"' "$checkout/src/api/names.h"
	render --set daemon.networkPolicy.enabled=false
	is 'kind("NetworkPolicy") == []'
	render --set featureGates.HostManagedIMEX=true
	is 'kind("NetworkPolicy") == []'
}

@test "the user's labels are on every object and pod, and in no selector" {
	render --set commonLabels.team=hpc --set-string commonLabels.example\\.com/cost=7 --set metrics.podMonitor.enabled=true --set metrics.dashboard.enabled=true \
		--set metrics.prometheusRule.enabled=true --set controller.networkPolicy.enabled=true --api-versions security.openshift.io/v1
	is 'all(.[]; .metadata.labels | .team == "hpc" and .["example.com/cost"] == "7")'
	is '[controller, plugin] | all(.metadata.labels.team == "hpc")'
	is '[.. | .matchLabels? // empty | has("team")] | any | not'
	is 'controller | env("CD_DAEMON_METADATA") | fromjson == {labels: {team: "hpc", "example.com/cost": "7"}, annotations: {}}'
	render --set commonLabels.team=hpc --set featureGates.HostManagedIMEX=true --set admission.hostManaged.enabled=true
	is 'all(.[]; .metadata.labels.team == "hpc")'
	is 'controller | env("KUBELET_PLUGIN_SELECTOR") | contains("team") | not'
	render --set commonLabels.app\\.kubernetes\\.io/name=mine
	is 'all(.[]; .metadata.labels["app.kubernetes.io/name"] == "compute-domains")'
	refused "propertyName 'app'" --set commonLabels.app=mine
	refused commonLabels --set-string 'commonLabels.team=two words'
}

# failure: values set a key of daemons that the driver uses -> Helm refuses them, and the controllers keep running [chart]
@test "the chart refuses the labels and annotations of daemons that the controller would refuse" {
	local value key
	for value in commonLabels daemon.podLabels daemon.podAnnotations; do
		for key in app app.kubernetes.io/component cluster-autoscaler.kubernetes.io/enable-ds-eviction \
			resource.nvidia.com/x imex.resource.nvidia.com/x; do
			refused "propertyName '$key'" --set-string "$value.${key//./\\.}=x"
		done
	done
	# The controller refuses the same keys.
	grep -qF '#define CD_LABEL_COMPONENT "app.kubernetes.io/component"' "$checkout/src/api/names.h"
	grep -qF '#define AUTOSCALER_EVICTION "cluster-autoscaler.kubernetes.io/enable-ds-eviction"' "$checkout/src/api/names.h"
}

@test "the values for daemons reach the controller" {
	render
	is 'controller | env("CD_DAEMON_METADATA") | fromjson == {labels: {}, annotations: {}}'
	is 'controller | env("CD_DAEMON_IMAGE_PULL_POLICY") == "IfNotPresent"'
	render --set commonLabels.team=hpc --set daemon.podLabels.team=imex --set daemon.podAnnotations.note=hello --set image.pullPolicy=Always
	is 'controller | env("CD_DAEMON_METADATA") | fromjson == {labels: {team: "imex"}, annotations: {note: "hello"}}'
	is 'controller | env("CD_DAEMON_IMAGE_PULL_POLICY") == "Always"'
	refused "propertyName 'app'" --set daemon.podLabels.app=mine
	refused "propertyName" --set daemon.podLabels.resource\\.nvidia\\.com/computeDomain=mine
	refused "propertyName" --set daemon.podAnnotations.imex\\.resource\\.nvidia\\.com/ready=true
}

@test "helm test creates a ComputeDomain and a pod that checks its channel" {
	render --set 'imagePullSecrets[0].name=one' --set image.repository=example.org/cd
	is 'kind("ComputeDomain")[0].spec.channel.resourceClaimTemplate.name == kind("Pod")[0].spec.resourceClaims[0].resourceClaimTemplateName'
	is 'kind("Pod")[0].spec | .containers[0].image == "example.org/cd:v0.2.0" and .containers[0].command == ["compute-domain-kubelet-plugin", "channels"] and
		.containers[0].resources.claims == [{name: "channel"}] and .imagePullSecrets == [{name: "one"}] and .securityContext.runAsNonRoot'
}

# failure: the cluster is OpenShift -> the driver's pods get their security context constraints
@test "on OpenShift the driver's pods get their security context constraints" {
	render --api-versions security.openshift.io/v1
	is '[kind("RoleBinding")[].roleRef.name | select(startswith("system:openshift"))] ==
		["system:openshift:scc:nonroot-v2", "system:openshift:scc:privileged", "system:openshift:scc:nonroot-v2"]'
	is 'kind("SecurityContextConstraints")[0] | .users ==
		["system:serviceaccount:nvidia-compute-domains:compute-domain-daemon",
		"system:serviceaccount:nvidia-compute-domains:compute-domain-daemon-service-account"] and .allowPrivilegedContainer == false'
	is 'plugin.spec.initContainers[0].securityContext.privileged'
}

@test "without ComputeDomains nothing is installed" {
	render --set resources.computeDomains.enabled=false
	is '. == []'
}

@test "values that would not work are refused with the reason" {
	refused "--namespace nvidia-compute-domains" --namespace default
	refused "choose the namespace with helm's --namespace" --set namespace=x
	refused "no admission webhook" --set webhook.enabled=true
	refused "imex/mode': value must be one of 'driverManaged', 'hostManaged'" --set resources.computeDomains.imex.mode=both
	refused "imex/isolation': value must be one of 'domain', 'channel'" --set resources.computeDomains.imex.isolation=pod
	refused "'agents' not allowed" --set resources.computeDomains.imex.agents=true
	refused "needs controller.leaderElection.enabled=true" --set controller.leaderElection.enabled=false
	refused "nothing needs nvidia-ctk" --set nvidiaCtkPath=/usr/bin/nvidia-ctk
	refused "kubeVersion" --kube-version 1.31.0
}

@test "values of the wrong form are refused by name" {
	refused "imagePullSecrets" --set 'imagePullSecrets[0]=my-secret'
	refused "nvidiaDriverRoot" --set nvidiaDriverRoot=run/nvidia/driver
	refused "featureGates" --set featureGates.ComputeDomainCliques=off
	refused "pullPolicy" --set image.pullPolicy=Sometimes
	refused "logVerbosity" --set logVerbosity=debug
	refused "resourceApiVersion" --set resourceApiVersion=v1
	refused "env" --set 'controller.containers.computeDomain.env.ADDITIONAL_NAMESPACES=old'
}

@test "values that the Go driver's chart accepts are not refused" {
	render --namespace default --set allowDefaultNamespace=true
	render --set gpuResourcesEnabledOverride=false --set consumableShares=4 --set maskNvidiaDriverParams=false
	render --set featureGates.IMEXDaemonsWithDNSNames=false
	is '[controller, plugin] | all(env("FEATURE_GATES") == "IMEXDaemonsWithDNSNames=false,")'
	render --set resources.computeDomains.imex.mode= --set resources.computeDomains.imex.isolation=null
	is '[controller, plugin] | all(env("IMEX_MODE") == "driverManaged" and env("IMEX_ISOLATION") == "domain")'
	render --set resources.computeDomains.imex=null
	render --set webhook.replicas=1 --set kubeletPlugin.metrics.gpuHttpEndpoint=:8080 --set controller.metrics.profilePath=/debug
	render --kube-version 1.34.1-gke.1000
	render --set logVerbosity=6 --set-string image.tag=1.5 --set nvidiaDriverRoot= --set altProcDevices=
	is 'controller.spec.containers[0].image == "compute-domains/compute-domains:1.5"'
	render --set-string kubeletPlugin.containers.computeDomains.healthcheckPort=51515 --set-string featureGates.ContextualLogging=true
	render --set imagePullSecrets=null --set controller.containers.computeDomain.env=null --set selectorLabelsOverride=null
}
