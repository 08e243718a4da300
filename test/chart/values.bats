# SPDX-License-Identifier: Apache-2.0
# Values: the chart names mistakes. Values for the Go driver's chart, or for an earlier version of this chart, work or are refused with the
# replacement. The files in values/ have keys and values of other charts, as people pass them.
load chart.bash

# with_defaults FILE [HELM ARGUMENT...]: rendered with the defaults of an older chart in place of ours, as --reuse-values does it.
with_defaults() {
	local copy=$BATS_TEST_TMPDIR/reused
	rm -rf "$copy"
	cp -r "$chart" "$copy"
	cp "$BATS_TEST_DIRNAME/values/$1" "$copy/values.yaml"
	chart=$copy render "${@:2}"
}
go=(--set resources.gpus.enabled=false --set image.repository=example.org/compute-domains)

# failure: a key is mistyped -> the chart refuses it by name
@test "a key that does not exist is refused by name, at any place" {
	refused "nvidiaDriveRoot" --set nvidiaDriveRoot=/
	refused "kubeletplugin" --set kubeletplugin.healthcheckPort=1
	refused "replica" --set controller.replica=1
	refused "tolerations" --set kubeletPlugin.containers.computeDomains.tolerations=x
	refused "maxNodesPerDomains" --set resources.computeDomains.imex.maxNodesPerDomains=18
	refused "repo" --set image.repo=x
	refused "claims" --set-json 'daemon.resources={"claims":[]}'
	render --set global.anything.at=all
}

@test "the schema has every value" {
	helm lint --strict --namespace nvidia-compute-domains --kube-version 1.37.0 "${image[@]}" "$chart"
	local path n=0
	while read -r path; do
		n=$((n + 1))
		[[ $(jq -r --arg p "$path" '[.properties] + [] | .[0] as $top | reduce ($p | split("."))[] as $k ({properties: $top}; .properties[$k] // {}) | length' \
			"$chart/values.schema.json") -gt 0 ]] || { echo "not in the schema: $path"; return 1; }
	done < <(to_json "$chart/values.yaml" | jq -r '.[0] | paths(type != "object" and type != "array") | select(all(type == "string")) | join(".")' |
		grep -vE '\.(resources|securityContext|podSecurityContext|affinity|updateStrategy|labels)\.')
	((n > 50)) # the list of values can be read
}

@test "freshPodPerDomain needs driver-managed IMEX and isolation by domain" {
	local fresh=resources.computeDomains.imex.freshPodPerDomain=true
	render
	is '[controller | env("FRESH_POD_PER_DOMAIN")] == []'
	render --set $fresh
	is 'controller | env("FRESH_POD_PER_DOMAIN") == "true"'
	refused "requires imex.mode=driverManaged and imex.isolation=domain" --set $fresh --set resources.computeDomains.imex.isolation=channel
	refused "requires imex.mode=driverManaged and imex.isolation=domain" --set $fresh --set featureGates.HostManagedIMEX=true
}

@test "feature gates are those of the programs" {
	local known
	known=$(grep -oP '\[GATE_\w+\] = \{ "\K\w+' "$checkout/src/api/gates.c" | sort | jq -Rn '[inputs]')
	[[ $(jq 'length' <<<"$known") -gt 15 ]]
	jq -e --argjson known "$known" '.properties.featureGates.properties | keys == $known' "$chart/values.schema.json"
	refused "HostManagedImex" --set featureGates.HostManagedImex=true
}

# failure: a value would crash a program -> the chart refuses it
@test "values that a program would refuse are refused by the chart" {
	refused "maxNodesPerDomain" --set resources.computeDomains.imex.maxNodesPerDomain=2000
	refused "maxNodesPerDomain" --set resources.computeDomains.imex.maxNodesPerDomain=0
	refused "hostProbeInterval" --set resources.computeDomains.imex.hostProbeInterval=5
	refused "hostProbeInterval 2h is not between 1s and 1h" --set resources.computeDomains.imex.hostProbeInterval=2h
	local word=(--set resources.computeDomains.imex.mode=hostManaged --set-string resources.computeDomains.imex.hostProbeInterval=0)
	refused "hostProbeInterval 0 is not possible with imex.waitForHost" "${word[@]}" --set resources.computeDomains.imex.waitForHost=true
	refused "hostProbeInterval 0 is not possible with imex.waitForHost" "${word[@]}" --set featureGates.HostManagedIMEXDaemon=true
	refused "hostProbeInterval 0 is not possible with imex.evictAfterMinutes" "${word[@]}" --set resources.computeDomains.imex.evictAfterMinutes=10
	refused "hostProbeInterval 0 is not possible with imex.evictAfterMinutes" --set-string resources.computeDomains.imex.hostProbeInterval=0 --set featureGates.HostManagedIMEX=true,resources.computeDomains.imex.evictAfterMinutes=10
	render --set-string resources.computeDomains.imex.hostProbeInterval=0 --set resources.computeDomains.imex.evictAfterMinutes=10
	render "${word[@]}"
	render "${word[@]}" --set featureGates.HostManagedIMEXDaemon=true --set resources.computeDomains.imex.waitForHost=false
	refused "hostProbeInterval 0 is not possible with imex.mode=hostManaged and imex.isolation=channel" "${word[@]}" \
		--set resources.computeDomains.imex.isolation=channel
	refused "hostSocketPath" --set resources.computeDomains.imex.hostSocketPath=run/imex.sock
	local driver=(--set nvidiaDriverRoot=/run/nvidia/driver --set resources.computeDomains.imex.mode=hostManaged) path
	for path in /run/imex.sock /var/run/imex.sock /imex.sock; do
		refused "cannot start with the host's" "${driver[@]}" --set "resources.computeDomains.imex.hostSocketPath=$path"
		render --set resources.computeDomains.imex.mode=hostManaged --set "resources.computeDomains.imex.hostSocketPath=$path"
	done
	render "${driver[@]}" --set resources.computeDomains.imex.hostSocketPath=/run/imex/imex.sock
	refused "leave one of the two out" --set selectorLabelsOverride.app=x --set 'selectorLabelsOverride.app\.kubernetes\.io/component=y'
	refused "leaseDuration (5000 ms) must be longer than renewDeadline (10000 ms)" --set controller.leaderElection.leaseDuration=5s
	refused "renewDeadline (10000 ms), which must be longer than retryPeriod (60000 ms)" --set controller.leaderElection.retryPeriod=1m
	refused "qps" --set controller.kubeAPI.qps=0
	refused "qps" --set controller.kubeAPI.qps=12.5
	refused "serviceAccount" --set serviceAccount=null
	refused "digest" --set image.digest=latest
	render --set controller.leaderElection.leaseDuration=1m30s --set controller.leaderElection.renewDeadline=1m --set controller.leaderElection.retryPeriod=2.5s
}

# failure: an endpoint has no port, or another listener of the pod has the same port -> the chart refuses it
@test "an endpoint needs a port, and the containers of the plugin's pod need different ports" {
	local name endpoint plugin=kubeletPlugin.metrics gpus=(--set resources.gpus.enabled=true)
	for name in controller.metrics.httpEndpoint $plugin.computeDomainHttpEndpoint $plugin.gpuHttpEndpoint; do
		for endpoint in 8080 localhost : :0 :65536 :http; do refused "${name##*.}" --set-string "$name=$endpoint"; done
		for endpoint in :65535 0.0.0.0:9090 '[::]:9090' ''; do render --set-string "$name=$endpoint"; done
	done
	refused "$plugin.computeDomainHttpEndpoint and $plugin.gpuHttpEndpoint have the port 8080" "${gpus[@]}" --set $plugin.computeDomainHttpEndpoint=:8080
	render --set $plugin.computeDomainHttpEndpoint=:8080
	render "${gpus[@]}" --set $plugin.computeDomainHttpEndpoint=:8080 --set resources.computeDomains.enabled=false
	refused "kubeletPlugin.containers.computeDomains.healthcheckPort and kubeletPlugin.containers.gpus.healthcheckPort have the port 51515" \
		"${gpus[@]}" --set kubeletPlugin.containers.gpus.healthcheckPort=51515
	refused "kubeletPlugin.containers.computeDomains.healthcheckPort and $plugin.computeDomainHttpEndpoint have the port 8081" \
		--set kubeletPlugin.containers.computeDomains.healthcheckPort=8081
	render "${gpus[@]}" --set kubeletPlugin.containers.gpus.healthcheckPort=-1 --set kubeletPlugin.containers.computeDomains.healthcheckPort=-1
}

# A rule without ports would allow all of them.
@test "the network policies need a port of the API server" {
	refused "apiServerPorts" --set-json networkPolicy.apiServerPorts=[]
	render --set controller.networkPolicy.enabled=true --set networkPolicy.apiServerPorts=null
	is 'kind("NetworkPolicy") | map(select(.spec.egress)) | map([.spec.egress[].ports[].port]) == [[443, 6443]]'
}

# failure: a key of another chart is used -> it is refused with the replacement
@test "keys of other charts are refused with the replacement" {
	refused "write resources.computeDomains.enabled" --set computeDomain.enabled=true
	refused "write resources.gpus.enabled" --set gpu.enabled=false
	refused "set image.repository to the image of this driver" --set image.repository=nvcr.io/nvidia/k8s-dra-driver-gpu
	refused "set image.repository to the image of this driver" --set image.repository=registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu
	render --set image.repository=example.org/mirror/dra-driver-nvidia-gpu-in-c
}

@test "without image.repository nothing is rendered, and the error names the value to set" {
	local image=()
	refused "image.repository is required: there is no published image yet" --set image.tag=v1
	refused "image.repository is required" --set image.repository=
	refused "image.repository is required" --set image.repository=null
}

config=resources.computeDomains.imex.config
@test "settings of nvidia-imex reach the daemons" {
	render
	is 'controller | [env("IMEX_CONFIG")] == []'
	render --set-string $config.IMEX_NODE_DISCONNECTED_GRACE_TIME=60
	is 'controller | env("IMEX_CONFIG") | fromjson == {"IMEX_NODE_DISCONNECTED_GRACE_TIME": "60"}'
	render --set $config.IMEX_GSS_TIMEOUT_SEC=12345678 --set $config.IMEX_GSS_SHUTDOWN_ON_FAILURE=true --set $config.IMEX_WAIT_FOR_QUORUM=NONE
	is 'controller | env("IMEX_CONFIG") | fromjson ==
		{"IMEX_GSS_TIMEOUT_SEC": "12345678", "IMEX_GSS_SHUTDOWN_ON_FAILURE": "true", "IMEX_WAIT_FOR_QUORUM": "NONE"}'
	render --set-string $config.IMEX_NODE_DISCONNECTED_GRACE_TIME=60 --set featureGates.HostManagedIMEX=true
	is 'controller | [env("IMEX_CONFIG")] == []'
	notes --set-string $config.IMEX_NODE_DISCONNECTED_GRACE_TIME=60 --set featureGates.HostManagedIMEX=true |
		grep -F "resources.computeDomains.imex.config: the hosts run nvidia-imex"
}

# No value needs this yet (src/api/daemon_settings.def).
@test "a new value of the daemons sets the variable with its name" {
	render --skip-schema-validation --set daemon.imexStopSeconds=12345678 --set daemon.imexFast=true --set daemon.imexNote=null --set-string daemon.imexName=x
	is 'controller | env("IMEX_STOP_SECONDS") == "12345678" and env("IMEX_FAST") == "true" and env("IMEX_NAME") == "x" and [env("IMEX_NOTE")] == []'
}

# The errors are those of src/imex/imex_settings.c.
@test "the chart refuses the settings of nvidia-imex that the programs refuse, with the same error" {
	local key why n=0
	while IFS='|' read -r key why; do
		refused "$config: $key belongs to the driver: $why; leave it out" --set-string "$config.$key=x"
		n=$((n + 1))
	done < <(sed -n 's/^        { "\([A-Z_]*\)", "\(.*\)" },$/\1|\2/p' "$checkout/src/imex/imex_settings.c")
	((n >= 12))
	refused "IMEX_CMD_BIND_INTERFACE_IP belongs to the driver" --set-string $config.IMEX_CMD_BIND_INTERFACE_IP=1.2.3.4
	refused "has a line break" --set-json "$config"='{"IMEX_GSS_SERVICE_NAME": "a\nDAEMONIZE=1"}'
	refused '"a=b" is not a key of nvidia-imex' --set-json "$config"='{"a=b": "1"}'
	refused 'contains "$("' --set-json "$config"='{"IMEX_GSS_SERVICE_NAME": "$(POD_IP)"}'
	refused "use RECOVERY or NONE" --set $config.IMEX_WAIT_FOR_QUORUM=FULL
}

@test "keys of the Go driver's main branch are accepted, or refused with advice" {
	refused "GPUBindingConditions: this driver publishes no binding conditions; leave it out" --set featureGates.GPUBindingConditions=true
	refused "ControllerOwnedCDCliques: this driver writes no cliques; leave it out" --set featureGates.ControllerOwnedCDCliques=true
	refused "featureGates.DeviceHealthCheck: this driver has no such feature gate; leave it out. It has AllAlpha, " --set featureGates.DeviceHealthCheck=false
	refused "bindingConditions: this driver publishes no binding conditions" --set 'bindingConditions={power.example.com/ready}'
	refused "bindingFailureConditions: this driver publishes no binding conditions" --set 'bindingFailureConditions={power.example.com/failed}'
	render --set bindingConditions=null
	render --set controller.priorityClassName=system-node-critical
	is 'controller | env("CD_DAEMON_PRIORITY_CLASS") == "system-node-critical"'
}

@test "AllAlpha=true is refused, with the gates to set instead" {
	refused "set the ones that you need by name (HostManagedIMEX, NVMLDeviceHealthCheck, TimeSlicingSettings)" \
		--set featureGates.AllAlpha=true
	refused "featureGates.AllAlpha=true" --set-string featureGates.AllAlpha=true
	render --set featureGates.AllAlpha=false
}

@test "the chart knows the feature gates of the programs, and no others" {
	local gate n=0
	for gate in $(sed -n 's/^        \[GATE_[A-Z_]*\] = { "\([A-Za-z]*\)".*/\1/p' "$checkout/src/api/gates.c"); do
		render --set "featureGates.$gate=false"
		n=$((n + 1))
	done
	[[ $n -gt 15 && $n == $(grep -A2 'define "compute-domains.gates"' "$chart/templates/_helpers.tpl" | grep -o '"[A-Z][A-Za-z]*"' | wc -l) ]]
}

@test "healthcheckPort 0 means no probe, and a note names the other meaning" {
	local name
	for name in computeDomains gpus; do
		render --set resources.gpus.enabled=true --set kubeletPlugin.containers.$name.healthcheckPort=0
		is '[plugin.spec.containers[] | has("livenessProbe")] | map(select(.)) | length == 1'
		notes --set kubeletPlugin.containers.$name.healthcheckPort=0 | grep -F "kubeletPlugin.containers.$name.healthcheckPort: 0 means no probe here" |
			grep -F "Write -1 for no probe, or a port"
		notes_lack healthcheckPort --set kubeletPlugin.containers.$name.healthcheckPort=-1
	done
}

# failure: values of the Go driver's chart are used -> they work or are refused with the replacement
@test "the published values for the Go driver's chart work, or are refused with the replacement" {
	local values=$BATS_TEST_DIRNAME/values
	render -f "$values/aks.yaml"
	render -f "$values/gpu-operator-computedomains.yaml"
	render -f "$values/gke.yaml"
	is 'named("DaemonSet"; "nvidia-dra-driver-gpu-kubelet-plugin").spec.template.spec | has("priorityClassName") | not'
	render -f "$values/go-site.yaml"
	is 'plugin.spec.containers | map(.name) == ["compute-domains", "gpus"]'
	render -f "$values/gpu-operator-gpus.yaml"
	is 'plugin.spec.containers | map(.name) == ["gpus"]'
	refused "nothing needs nvidia-ctk" -f "$values/oke-old.yaml"
	refused "is the image of the Go driver" -f "$values/oke-old.yaml" --set nvidiaCtkPath=null
	render -f "$values/oke-old.yaml" --set nvidiaCtkPath=null --set image.repository=example.org/cd
	is 'plugin.spec.containers | map(.name) == ["compute-domains", "gpus"]'
	refused "is the image of the Go driver" -f "$values/go-chart-defaults.yaml"
	render -f "$values/go-chart-defaults.yaml" --set image.repository=example.org/compute-domains
	is 'plugin.spec.containers | map(.name) == ["compute-domains", "gpus"]'
	render -f "$values/go-chart-defaults.yaml" "${go[@]}"
	is 'plugin.spec.containers | map(.name) == ["compute-domains"]'
}

@test "daemons have no priority class if controller and plugin have none" {
	render --set controller.priorityClassName= --set kubeletPlugin.priorityClassName=
	is 'controller | env("CD_DAEMON_PRIORITY_CLASS") == ""'
	render --set controller.priorityClassName=
	is 'controller | env("CD_DAEMON_PRIORITY_CLASS") == "system-node-critical"'
	render --set daemon.priorityClassName=
	is 'controller | env("CD_DAEMON_PRIORITY_CLASS") == ""'
	render --set controller.priorityClassName= --set kubeletPlugin.priorityClassName= --set daemon.priorityClassName=mine
	is 'controller | env("CD_DAEMON_PRIORITY_CLASS") == "mine"'
}

# failure: --reuse-values is used over the Go driver's chart -> missing values get their defaults [go]
@test "--reuse-values over the Go driver's chart gets our defaults for missing values" {
	with_defaults go-chart-defaults.yaml "${go[@]}"
	is 'controller | env("KUBE_API_QPS") == "200" and env("KUBE_API_BURST") == "400" and env("APPLY_CRDS") == "true" and
		env("CD_DAEMON_RESOURCES") == "{}" and env("CD_DAEMON_PRIORITY_CLASS") == "system-node-critical"'
	is 'plugin | env("KUBE_API_QPS") == "50" and env("KUBE_API_BURST") == "100"'
	with_defaults go-chart-defaults.yaml "${go[@]}" --set controller.networkPolicy.enabled=true
	is 'kind("NetworkPolicy") | map(select(.spec.egress)) | all(.spec | [.egress[].ports[].port] == [443, 6443])'
	is 'kind("NetworkPolicy") | map(.metadata.name) | index("compute-domains-daemon")'
	with_defaults go-chart-defaults.yaml "${go[@]}" --set featureGates.HostManagedIMEX=true --api-versions security.openshift.io/v1
}

# The chart nvidia-dra-driver-gpu has the feature gate DeviceHealthCheck, which no longer exists.
@test "--reuse-values over the older of the Go driver's charts gets our defaults for missing values" {
	with_defaults older-go-chart-defaults.yaml "${go[@]}" --set featureGates.DeviceHealthCheck=null
	is 'controller | env("LEADER_ELECTION_LEASE_DURATION") == "15s" and env("HTTP_ENDPOINT") == ":8080" and env("LOG_VERBOSITY") == "4"'
	is 'plugin | env("HTTP_ENDPOINT") == ":8081" and env("METRICS_PATH") == "/metrics" and env("LOG_VERBOSITY") == "4"'
	is 'controller | env("GPU_CLIQUE_LABEL_ENABLED") == "true"'
	is 'named("Deployment"; "compute-domains-controller").spec.replicas == 2'
	is 'kind("Role") | map(.rules[].resources[]) | index("leases")'
}

# null removes a default, and the schema allows null where the templates have another default.
@test "a value that is null gets its default" {
	local plain key
	render
	plain=$objects
	for key in controller.replicas controller.leaderElection controller.metrics kubeletPlugin.metrics kubeletPlugin.kubeletRegistrarDirectoryPath \
		kubeletPlugin.kubeletPluginsDirectoryPath kubeletPlugin.containers.computeDomains.healthcheckPort image.pullPolicy logVerbosity; do
		render --set "$key=null"
		[[ $objects == "$plain" ]] || { diff <(jq . <<<"$plain") <(jq . <<<"$objects"); echo "$key"; return 1; }
	done
}

# failure: --reuse-values is used over an older chart -> missing values get their defaults [upgrade]
@test "--reuse-values over an older version of this chart gets our defaults for missing values" {
	with_defaults older-chart-defaults.yaml
	is 'controller | env("CD_DAEMON_PRIORITY_CLASS") == "system-node-critical" and [env("LOGGING_FORMAT")] == []'
	with_defaults older-chart-defaults.yaml --set featureGates.HostManagedIMEX=true --set admission.hostManaged.enabled=true --set crds.applyAtStart=false \
		--set controller.networkPolicy.enabled=true --set kubeletPlugin.networkPolicy.enabled=true
	is 'controller | env("APPLY_CRDS") == "false"'
}

# As a number, 1.10 would become 1.1, and 20240101 would become 2.0240101e+07.
@test "a tag of the image that is a number must be quoted" {
	local values=$BATS_TEST_TMPDIR/tag.yaml tag
	for tag in 1.10 20240101; do
		echo "image: {tag: $tag}" >"$values"
		refused "/image/tag': got number, want null or string" -f "$values"
		echo "image: {tag: \"$tag\"}" >"$values"
		render -f "$values"
		is 'controller.spec.containers[0].image == "compute-domains/compute-domains:\($tag)" and
			(controller | env("IMAGE_NAME") | endswith(":\($tag)"))' --arg tag $tag
		render --set-string image.tag=$tag
		is 'plugin.spec.containers[0].image == "compute-domains/compute-domains:\($tag)"' --arg tag $tag
	done
	render --set image.tag=null
}

@test "an image can be pinned by its digest" {
	local digest=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
	render --set image.digest=$digest
	is '[controller, plugin] | all(.spec.containers[0].image == "compute-domains/compute-domains:v0.2.0@\($d)")' --arg d $digest
	is 'controller | env("IMAGE_NAME") == "compute-domains/compute-domains:v0.2.0@\($d)"' --arg d $digest
}

@test "the values of GKE, AKS and OKE in docs/how-to/platforms.md render" {
	local platform file
	for platform in gke aks oke; do
		file=$BATS_TEST_TMPDIR/$platform.yaml
		awk -v first="# $platform.yaml" '$0 == first { inside = 1 } /^```$/ { inside = 0 } inside' "$checkout/docs/how-to/platforms.md" |
			sed 's|<your registry>|registry.example.org|' >"$file"
		render --values "$file"
		is '[controller, plugin] | all(.spec.containers[0].image | startswith("registry.example.org/compute-domains:"))'
		[[ $platform != gke ]] || is '[controller, plugin] | all(.spec.priorityClassName == null)'
		[[ $platform != aks ]] || is '[controller, plugin] | all(.spec.tolerations | any(. == {operator: "Exists"}))'
	done
}

@test "the plugin tolerates the taint of arm64 nodes" {
	render
	is 'plugin.spec.tolerations | any(.key == "kubernetes.io/arch" and .value == "arm64" and .effect == "NoSchedule")'
}

# The name and version in Chart.yaml become the repository and tag in a registry.
@test "helm packages the chart in the form that an OCI registry accepts" {
	helm package "$chart" --destination "$BATS_TEST_TMPDIR"
	local package=$BATS_TEST_TMPDIR/compute-domains-$(<"$checkout/VERSION").tgz
	helm show chart "$package" >"$BATS_TEST_TMPDIR/Chart.yaml"
	grep -x "name: compute-domains" "$BATS_TEST_TMPDIR/Chart.yaml"
	sed -n 's/^version: //p' "$BATS_TEST_TMPDIR/Chart.yaml" | grep -xE '[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?'
	local field
	for field in type description appVersion kubeVersion; do grep -q "^$field: ." "$BATS_TEST_TMPDIR/Chart.yaml"; done
	grep -x '  artifacthub.io/license: Apache-2.0' "$BATS_TEST_TMPDIR/Chart.yaml"
	# The package contains its licence and its description.
	cmp <(tar xOf "$package" compute-domains/LICENSE) "$checkout/LICENSE"
	cmp <(tar xOf "$package" compute-domains/README.md) "$chart/README.md"
	# The package contains the files that the templates read.
	tar tf "$package" | grep -x compute-domains/files/alerts.yaml
	tar tf "$package" | grep -x compute-domains/files/dashboard.json
	tar tf "$package" | grep -x compute-domains/files/alerts-gpus.yaml
	tar tf "$package" | grep -x compute-domains/files/dashboard-gpus.json
	helm template x "$package" --namespace a --kube-version 1.37.0 "${image[@]}" --set metrics.prometheusRule.enabled=true | grep -q ComputeDomainNotReady
}

@test "values without an effect here are listed after the installation, each with the reason" {
	local values=$BATS_TEST_DIRNAME/values text
	text=$(notes -f "$values/go-chart-defaults.yaml" "${go[@]}" --set controller.priorityClassName= --set kubeletPlugin.priorityClassName= \
		--set controller.metrics.profilePath=/debug --set consumableShares=4 --set featureGates.MPSSupport=true \
		--set nvidiaCDIHookPath=/usr/bin/nvidia-cdi-hook --set featureGates.ComputeDomainCliques=false --set-string featureGates.IMEXDaemonsWithDNSNames=false)
	local key
	for key in 'webhook\.\*: .*failurePolicy.* tls' \
		'controller\.metrics\.profilePath: ' 'consumableShares: ' 'featureGates\.MPSSupport: ' 'featureGates\.ComputeDomainCliques: ' 'featureGates\.IMEXDaemonsWithDNSNames: ' 'nvidiaCDIHookPath: ' \
		'controller\.priorityClassName, kubeletPlugin\.priorityClassName: both empty, so the daemons'; do
		grep -qE "^  $key" <<<"$text" || { echo "missing: $key"; echo "$text"; return 1; }
	done
	text=$(notes --set admission.hostManaged.enabled=true --set resources.computeDomains.imex.trustContainerToolkit=true)
	for key in 'admission\.hostManaged\.enabled: ' 'resources\.computeDomains\.imex\.trustContainerToolkit: '; do
		grep -qE "^  $key" <<<"$text" || { echo "missing: $key"; echo "$text"; return 1; }
	done
	local host=(--set resources.computeDomains.imex.mode=hostManaged)
	text=$(notes "${host[@]}" --set resources.computeDomains.imex.maxNodesPerDomain=36 --set daemon.podLabels.a=b --set daemon.networkPolicy.enabled=false)
	for key in 'resources\.computeDomains\.imex\.maxNodesPerDomain: ' 'daemon\.networkPolicy, daemon\.podLabels: '; do
		grep -qE "^  $key" <<<"$text" || { echo "missing: $key"; echo "$text"; return 1; }
	done
	notes_lack "have no effect here" "${host[@]}" --set resources.computeDomains.imex.isolation=channel --set resources.computeDomains.imex.trustContainerToolkit=true \
		--set admission.hostManaged.enabled=true
	notes_lack "have no effect here" --set daemon.podLabels.a=b --set resources.computeDomains.imex.maxNodesPerDomain=36
	text=$(notes --set resources.computeDomains.enabled=false --set resources.computeDomains.rackDomains.enabled=true \
		--set resources.computeDomains.autoDomains.enabled=true)
	for key in rackDomains autoDomains; do
		grep -qE "^  resources\.computeDomains\.$key\.enabled: " <<<"$text" || { echo "missing: $key"; echo "$text"; return 1; }
	done
	notes_lack "have no effect here" --set image.repository=example.org/cd --set image.tag=mine
	notes_lack "have no effect here" --set featureGates.ComputeDomainCliques=true
	notes_lack "have no effect here" --set featureGates.MPSSupport=null
	notes_lack "have no effect here"
}
