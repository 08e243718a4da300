{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/* The chart's name, the prefix of the names of namespaced objects. */}}
{{- define "compute-domains.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name, the prefix of the names of cluster-wide objects and service accounts. */}}
{{- define "compute-domains.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The namespace that the driver runs in. */}}
{{- define "compute-domains.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/*
All namespaces that the controller manages, as a JSON list: the driver's own, then those of ADDITIONAL_NAMESPACES. This template reads
the controller's environment, as the controller does.
*/}}
{{- define "compute-domains.namespaces" -}}
{{- $namespaces := list (include "compute-domains.namespace" .) -}}
{{- range regexSplit "[, \\t\\n]+" (include "compute-domains.controllerSays" (list . "ADDITIONAL_NAMESPACES" "")) -1 -}}
{{- with . -}}{{- $namespaces = append $namespaces . -}}{{- end -}}
{{- end -}}
{{- $namespaces | uniq | toJson -}}
{{- end -}}

{{/*
The value of one variable of the controller's environment: the user's, which takes precedence, or the chart's. Takes
(list $ "NAME" "default").
*/}}
{{- define "compute-domains.controllerSays" -}}
{{- $value := index . 2 -}}
{{- $name := index . 1 -}}
{{- range (index . 0).Values.controller.containers.computeDomain.env -}}
{{- if and (eq .name $name) .value -}}{{- $value = .value -}}{{- end -}}
{{- end -}}
{{- $value -}}
{{- end -}}

{{/* The managed namespaces except the driver's own, comma-separated. The kubelet plugins also serve daemons there. */}}
{{- define "compute-domains.additionalNamespaces" -}}
{{- include "compute-domains.namespaces" . | fromJsonArray | rest | join "," -}}
{{- end -}}

{{/* Labels of all objects except pods: the user's and ours. Ours take precedence. */}}
{{- define "compute-domains.labels" -}}
{{- $labels := include "compute-domains.value" (list . "commonLabels" dict) | fromJson -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" (include "compute-domains.name" .) .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $_ := set $labels "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/name" (include "compute-domains.name" .) -}}
{{- $_ := set $labels "app.kubernetes.io/instance" .Release.Name -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* The label by which a Deployment or DaemonSet finds its pods. Takes (list $ "component"). */}}
{{- define "compute-domains.selectorLabels" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.selectorLabelsOverride -}}
{{- toYaml $root.Values.selectorLabelsOverride -}}
{{- else -}}
{{ include "compute-domains.name" $root }}-component: {{ index . 1 }}
{{- end -}}
{{- end -}}

{{/*
Labels of pods: a merge, because selectorLabelsOverride may have any of the other keys and must take precedence. Takes
(list $ "component").
*/}}
{{- define "compute-domains.podLabels" -}}
{{- $root := index . 0 -}}
{{- $labels := dict "app" (printf "compute-domain-%s" (index . 1)) -}}
{{- $_ := set $labels "app.kubernetes.io/name" (include "compute-domains.name" $root) -}}
{{- $_ := set $labels "app.kubernetes.io/instance" $root.Release.Name -}}
{{- /* Only this label then distinguishes the components. validation.yaml refuses an override of both. */}}
{{- if hasKey ($root.Values.selectorLabelsOverride | default dict) "app" -}}
{{- $_ := set $labels "app.kubernetes.io/component" (index . 1) -}}
{{- end -}}
{{- mergeOverwrite $labels (include "compute-domains.selectorLabels" . | fromYaml) | toYaml -}}
{{- end -}}

{{/* The same with the user's labels. No selector uses those, so an upgrade may change them. */}}
{{- define "compute-domains.podTemplateLabels" -}}
{{- $labels := include "compute-domains.value" (list (index . 0) "commonLabels" dict) | fromJson -}}
{{- mergeOverwrite $labels (include "compute-domains.podLabels" . | fromYaml) | toYaml -}}
{{- end -}}

{{/* Labels and annotations of the daemons, in the form that the controller expects. */}}
{{- define "compute-domains.daemonMetadata" -}}
{{- $labels := include "compute-domains.value" (list . "commonLabels" dict) | fromJson -}}
{{- $own := include "compute-domains.value" (list . "daemon.podLabels" dict) | fromJson -}}
{{- $annotations := include "compute-domains.value" (list . "daemon.podAnnotations" dict) | fromJson -}}
{{- dict "labels" (mergeOverwrite $labels $own) "annotations" $annotations | toJson -}}
{{- end -}}

{{/* A label selector for the kubelet plugin's pods. It has all of their labels, because the controller's pods have those of an override, too. */}}
{{- define "compute-domains.pluginSelector" -}}
{{- $terms := list -}}
{{- range $key, $value := include "compute-domains.podLabels" (list . "kubelet-plugin") | fromYaml -}}
{{- $terms = append $terms (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- join "," $terms -}}
{{- end -}}

{{- define "compute-domains.image" -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/*
A value that the chart of an earlier release may not have: with --reuse-values the defaults of that chart replace ours. A key that
exists and is empty stays empty. Takes (list $ "path.to.key" default).
*/}}
{{- define "compute-domains.value" -}}
{{- $at := (index . 0).Values -}}
{{- $there := true -}}
{{- range splitList "." (index . 1) -}}
{{- if and $there (kindIs "map" $at) (hasKey $at .) -}}{{- $at = get $at . -}}{{- else -}}{{- $there = false -}}{{- end -}}
{{- end -}}
{{- if $there -}}{{- toJson $at -}}{{- else -}}{{- toJson (index . 2) -}}{{- end -}}
{{- end -}}

{{/* The same for one word, as plain text. null gives the default, too. */}}
{{- define "compute-domains.word" -}}
{{- $word := include "compute-domains.value" . -}}
{{- if eq $word "null" -}}{{- index . 2 -}}{{- else if hasPrefix "\"" $word -}}{{- fromJsonArray (printf "[%s]" $word) | first -}}{{- else -}}{{- $word -}}{{- end -}}
{{- end -}}

{{/* The same for each member of a map, as JSON. Takes (list $ "path.to.map" defaults). */}}
{{- define "compute-domains.members" -}}
{{- $members := deepCopy (index . 2) -}}
{{- range $key, $value := include "compute-domains.value" . | fromJson -}}
{{- if not (kindIs "invalid" $value) -}}{{- $_ := set $members $key $value -}}{{- end -}}
{{- end -}}
{{- toJson $members -}}
{{- end -}}

{{- define "compute-domains.leaderElection" -}}
{{- include "compute-domains.members" (list . "controller.leaderElection" (dict "enabled" true "leaseDuration" "15s" "renewDeadline" "10s" "retryPeriod" "2s")) -}}
{{- end -}}

{{- define "compute-domains.controllerMetrics" -}}
{{- include "compute-domains.members" (list . "controller.metrics" (dict "enabled" true "httpEndpoint" ":8080" "metricsPath" "/metrics")) -}}
{{- end -}}

{{- define "compute-domains.pluginMetrics" -}}
{{- include "compute-domains.members" (list . "kubeletPlugin.metrics" (dict "enabled" true "computeDomainHttpEndpoint" ":8081" "gpuHttpEndpoint" ":8080" "metricsPath" "/metrics")) -}}
{{- end -}}

{{- define "compute-domains.registrarPath" -}}
{{- include "compute-domains.word" (list . "kubeletPlugin.kubeletRegistrarDirectoryPath" "/var/lib/kubelet/plugins_registry") -}}
{{- end -}}

{{- define "compute-domains.pluginsPath" -}}
{{- include "compute-domains.word" (list . "kubeletPlugin.kubeletPluginsDirectoryPath" "/var/lib/kubelet/plugins") -}}
{{- end -}}

{{- define "compute-domains.healthcheckPort" -}}
{{- include "compute-domains.word" (list . "kubeletPlugin.containers.computeDomains.healthcheckPort" 51515) -}}
{{- end -}}

{{- define "compute-domains.replicas" -}}
{{- include "compute-domains.word" (list . "controller.replicas" 2) -}}
{{- end -}}

{{- define "compute-domains.pullPolicy" -}}
{{- include "compute-domains.word" (list . "image.pullPolicy" "IfNotPresent") -}}
{{- end -}}

{{- define "compute-domains.logVerbosity" -}}
{{- include "compute-domains.word" (list . "logVerbosity" "4") -}}
{{- end -}}

{{/*
The daemons' priority class. The chart dra-driver-nvidia-gpu has no value for it. If neither controller nor plugin has a class, the daemons
have none either, as on GKE, where such a class needs a ResourceQuota.
*/}}
{{- define "compute-domains.daemonPriorityClass" -}}
{{- $class := "system-node-critical" -}}
{{- if and (not .Values.controller.priorityClassName) (not .Values.kubeletPlugin.priorityClassName) -}}{{- $class = "" -}}{{- end -}}
{{- $daemon := .Values.daemon | default dict -}}
{{- if and (hasKey $daemon "priorityClassName") (kindIs "string" $daemon.priorityClassName) -}}{{- $class = $daemon.priorityClassName -}}{{- end -}}
{{- $class -}}
{{- end -}}

{{/* A duration such as 1m30s, in milliseconds. */}}
{{- define "compute-domains.ms" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- $ms := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" . -1 -}}
{{- $number := regexFind "^[0-9.]+" . -}}
{{- $ms = addf $ms (mulf $number (get $units (trimPrefix $number .))) -}}
{{- end -}}
{{- int $ms -}}
{{- end -}}

{{/* The image of the daemons without tag and digest. */}}
{{- define "compute-domains.daemonRepository" -}}
{{- $image := include "compute-domains.controllerSays" (list . "IMAGE_NAME" (include "compute-domains.image" .)) -}}
{{- regexReplaceAllLiteral ":[^/]*$" (splitList "@" $image | first) "" -}}
{{- end -}}

{{/* The prefix of the names of our service accounts, before "-controller" and "-kubeletplugin". */}}
{{- define "compute-domains.serviceAccountPrefix" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (printf "%s-service-account" (include "compute-domains.fullname" .)) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The controller writes this name into the DaemonSet, so it is not a value. */}}
{{- define "compute-domains.daemonServiceAccount" -}}
compute-domain-daemon
{{- end -}}

{{/* The account of the daemons that the Go driver has left. */}}
{{- define "compute-domains.goDaemonServiceAccount" -}}
compute-domain-daemon-service-account
{{- end -}}

{{- define "compute-domains.leaseName" -}}
{{ include "compute-domains.name" . }}-controller
{{- end -}}

{{/* The newest version of resource.k8s.io that the cluster offers; empty if it offers none. */}}
{{- define "compute-domains.resourceApiVersion" -}}
{{- if .Values.resourceApiVersion -}}
{{- .Values.resourceApiVersion -}}
{{- else if .Capabilities.APIVersions.Has "resource.k8s.io/v1" -}}
resource.k8s.io/v1
{{- else if .Capabilities.APIVersions.Has "resource.k8s.io/v1beta2" -}}
resource.k8s.io/v1beta2
{{- else if .Capabilities.APIVersions.Has "resource.k8s.io/v1beta1" -}}
resource.k8s.io/v1beta1
{{- end -}}
{{- end -}}

{{/* "true" on OpenShift. */}}
{{- define "compute-domains.openshift" -}}
{{- $apis := .Capabilities.APIVersions -}}
{{- if or ($apis.Has "security.openshift.io/v1") ($apis.Has "security.openshift.io/v1/SecurityContextConstraints") -}}
true
{{- end -}}
{{- end -}}

{{/* The value of FEATURE_GATES. A gate that is null is not named: Helm keeps a null for a key without a default. */}}
{{- define "compute-domains.featureGates" -}}
{{- range $gate, $on := .Values.featureGates }}{{ if not (kindIs "invalid" $on) }}{{ $gate }}={{ $on }},{{ end }}{{ end -}}
{{- end -}}

{{/* "true" when the alpha feature gate is on. Takes (list $ "Gate"). */}}
{{- define "compute-domains.alphaGate" -}}
{{- $gates := (index . 0).Values.featureGates | default dict -}}
{{- if eq (toString (dig (index . 1) (dig "AllAlpha" false $gates) $gates)) "true" -}}true{{- end -}}
{{- end -}}

{{/* "true" if the hosts run IMEX: then there are no daemons and no objects for them. */}}
{{- define "compute-domains.hostManaged" -}}
{{- $imex := .Values.resources.computeDomains.imex | default dict -}}
{{- if or (include "compute-domains.alphaGate" (list . "HostManagedIMEX")) (eq ($imex.mode | default "driverManaged") "hostManaged") -}}
true
{{- end -}}
{{- end -}}

{{/* "true" if each ComputeDomain has its own IMEX channel. */}}
{{- define "compute-domains.ownChannels" -}}
{{- $imex := .Values.resources.computeDomains.imex | default dict -}}
{{- if eq ($imex.isolation | default "domain") "channel" -}}
true
{{- end -}}
{{- end -}}

{{/*
Annotations that make Helm keep the account and the roles of running daemons, and their limits: the policy of the account, and the
NetworkPolicy of the daemons. A permission must not outlive its limits. A daemon whose node is in use outlives "helm uninstall", a rollback
and a change of the mode. Tokens are bound to the UID of their account: a daemon cannot use an account that is created later until the
kubelet renews its token.
*/}}
{{- define "compute-domains.keptWithDaemons" -}}
annotations:
  helm.sh/resource-policy: keep
{{- end -}}

{{/*
Merges environment lists. A user's entry replaces ours with the same name, because Kubernetes merges such lists by name and loses
duplicate entries. Takes (dict "ours" YAML-text "users" list).
*/}}
{{- define "compute-domains.env" -}}
{{- $users := .users | default list -}}
{{- $taken := dict -}}
{{- range $users -}}{{- $_ := set $taken .name true -}}{{- end -}}
{{- $env := list -}}
{{- range fromYamlArray .ours -}}
{{- if not (hasKey $taken .name) -}}{{- $env = append $env . -}}{{- end -}}
{{- end -}}
{{- concat $env $users | toYaml -}}
{{- end -}}

{{/* The port of an endpoint; empty if it is bound to one address, which may not be the pod's. */}}
{{- define "compute-domains.port" -}}
{{- regexFind "^(0\\.0\\.0\\.0|\\[::\\])?:[0-9]+$" . | splitList ":" | last -}}
{{- end -}}

{{/* The ports on which other pods reach the metrics and the probes; empty if they cannot. */}}
{{- define "compute-domains.controllerPort" -}}
{{- $metrics := include "compute-domains.controllerMetrics" . | fromJson -}}
{{- if $metrics.enabled -}}
{{- include "compute-domains.port" $metrics.httpEndpoint -}}
{{- end -}}
{{- end -}}

{{- define "compute-domains.pluginPort" -}}
{{- $metrics := include "compute-domains.pluginMetrics" . | fromJson -}}
{{- if $metrics.enabled -}}
{{- include "compute-domains.port" $metrics.computeDomainHttpEndpoint -}}
{{- end -}}
{{- end -}}

{{- /* Not empty: each rack gets a ComputeDomain. */ -}}
{{- define "compute-domains.racks" -}}
{{- if eq (toString (dig "rackDomains" "enabled" false (.Values.resources.computeDomains | default dict))) "true" }}true{{ end -}}
{{- end -}}

{{- /* Not empty: workloads whose pods have the label resource.nvidia.com/auto-domain get a ComputeDomain. */ -}}
{{- define "compute-domains.autoDomains" -}}
{{- $domains := .Values.resources.computeDomains | default dict -}}
{{- if and $domains.enabled (eq (toString (dig "autoDomains" "enabled" false $domains)) "true") }}true{{ end -}}
{{- end -}}

{{- /* The label of Nodes that names their rack, or empty. */ -}}
{{- define "compute-domains.rackLabel" -}}
{{- dig "rackDomains" "nameFromNodeLabel" "" (.Values.resources.computeDomains | default dict) | default "" -}}
{{- end -}}

{{/*
"true" if GPUs are allocated: by resources.gpus.enabled if it is set, else by gpuResourcesEnabledOverride, which enables them in the chart
dra-driver-nvidia-gpu.
*/}}
{{- define "compute-domains.gpus" -}}
{{- $enabled := dig "gpus" "enabled" nil (.Values.resources | default dict) -}}
{{- if kindIs "bool" $enabled -}}
{{- if $enabled }}true{{ end -}}
{{- else if .Values.gpuResourcesEnabledOverride -}}
true
{{- end -}}
{{- end -}}

{{/* "true" if there is a kubelet plugin: for ComputeDomains, for GPUs, or for both in one pod. */}}
{{- define "compute-domains.plugins" -}}
{{- if or .Values.resources.computeDomains.enabled (include "compute-domains.gpus" .) -}}
true
{{- end -}}
{{- end -}}

{{/* The names of all feature gates, as a JSON array. */}}
{{- define "compute-domains.gates" -}}
{{- list "AllAlpha" "AllBeta" "ComputeDomainCliques" "ConsumableShares" "ContextualLogging" "CrashOnNVLinkFabricErrors" "DRAListTypeAttributes" "DeviceMetadata" "DynamicMIG" "FabricManagerPartitioning" "HostManagedIMEX" "HostManagedIMEXDaemon" "IMEXDaemonsWithDNSNames" "LoggingAlphaOptions" "LoggingBetaOptions" "MPSSupport" "NVMLDeviceHealthCheck" "PassthroughSupport" "TimeSlicingSettings" | toJson -}}
{{- end -}}

{{/* resources.computeDomains.imex.config as JSON, all values as strings; empty without settings, and if the hosts run IMEX. */}}
{{- define "compute-domains.imexConfig" -}}
{{- $config := dig "config" dict (.Values.resources.computeDomains.imex | default dict) | default dict -}}
{{- if and $config (not (include "compute-domains.hostManaged" .)) -}}
{{- include "compute-domains.strings" $config -}}
{{- end -}}
{{- end -}}

{{/* The map as JSON, all values as strings. */}}
{{- define "compute-domains.strings" -}}
{{- $strings := dict -}}
{{- range $key, $value := . -}}
{{- /* A number of a values file is a float64 here, which prints large ones with an exponent. */ -}}
{{- $whole := and (kindIs "float64" $value) (eq (float64 (int64 $value)) $value) -}}
{{- $_ := set $strings $key (ternary (printf "%d" (int64 (ternary $value 0 $whole))) (toString $value) $whole) -}}
{{- end -}}
{{- toJson $strings -}}
{{- end -}}

{{/*
The values of `daemon` that the controller reads from the variables with their names (src/api/daemon_settings.def), as JSON:
{"IMEX_STOP_SECONDS": "9"} for daemon.imexStopSeconds. Other templates use the values that are excluded here.
*/}}
{{- define "compute-domains.daemonSettings" -}}
{{- $settings := dict -}}
{{- range $key, $value := omit (.Values.daemon | default dict) "priorityClassName" "podLabels" "podAnnotations" "resources" "networkPolicy" -}}
{{- if not (kindIs "invalid" $value) -}}{{- $_ := set $settings ($key | snakecase | upper) $value -}}{{- end -}}
{{- end -}}
{{- include "compute-domains.strings" $settings -}}
{{- end -}}

{{/* Refuses what the programs refuse in resources.computeDomains.imex.config (imex_settings_parse). */}}
{{- define "compute-domains.refuseIMEXConfig" -}}
{{- $where := "resources.computeDomains.imex.config" -}}
{{- range $key, $value := include "compute-domains.imexConfig" . | default "{}" | fromJson -}}
{{- if not (regexMatch "^[A-Z_][A-Z0-9_]{0,63}$" $key) -}}
{{- fail (printf "%s: %q is not a key of nvidia-imex: want capital letters, digits and _." $where $key) -}}
{{- end -}}
{{- with get (include "compute-domains.imexOwnedKeys" $ | fromYaml) $key -}}
{{- fail (printf "%s: %s belongs to the driver: %s; leave it out." $where $key .) -}}
{{- end -}}
{{- if not (regexMatch "^[ -~]{0,512}$" $value) -}}
{{- fail (printf "%s: the value of %s has a line break, a character that is not ASCII, or more than 512 characters." $where $key) -}}
{{- end -}}
{{- if contains "$(" $value -}}
{{- fail (printf "%s: the value of %s contains \"$(\"." $where $key) -}}
{{- end -}}
{{- if and (eq $key "IMEX_WAIT_FOR_QUORUM") (eq $value "FULL") -}}
{{- fail (printf "%s: IMEX_WAIT_FOR_QUORUM=FULL waits for the slots of nodes that are not in the domain; use RECOVERY or NONE." $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "compute-domains.imexOwnedKeys" -}}
BIND_INTERFACE_IP: nvidia-imex listens on the pod's address
DAEMONIZE: nvidia-imex stays a child of the daemon
IMEX_CMD_BIND_INTERFACE_IP: the command service listens on the pod's address
IMEX_CMD_ENABLED: the driver asks nvidia-imex for its state by the command service
IMEX_CMD_PORT: the network policy opens port 50005
IMEX_CMD_UNIX_DOMAIN_PATH: the driver asks nvidia-imex for its state by port 50005
IMEX_NODE_CONFIG_FILE: the driver writes the list of nodes
LOG_FILE_NAME: the log of nvidia-imex is the log of the pod
LOG_LEVEL: the driver reads the node's id from lines of level 4
LOG_USE_SYSLOG: the log of nvidia-imex is the log of the pod
NETWORK_INTERFACE: nvidia-imex listens on the pod's address
SERVER_PORT: the driver chooses the port, and the network policy follows
{{- end -}}
