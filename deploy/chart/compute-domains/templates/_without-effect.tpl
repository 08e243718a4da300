{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/*
A line for each value that is set and has no effect here, or another effect than in the chart dra-driver-nvidia-gpu. Values that would
remove a feature are refused instead (validation.yaml).
*/}}
{{- define "compute-domains.withoutEffect" -}}
{{- $values := .Values -}}
{{- $gpus := include "compute-domains.gpus" . -}}
{{- $imex := .Values.resources.computeDomains.imex | default dict -}}
{{- $host := include "compute-domains.hostManaged" . -}}
{{- if not .Values.resources.computeDomains.enabled }}
{{- range $name := list "rackDomains" "autoDomains" }}
{{- if dig $name "enabled" false $values.resources.computeDomains }}
resources.computeDomains.{{ $name }}.enabled: resources.computeDomains.enabled=false takes precedence
{{- end }}
{{- end }}
{{- end }}
{{- if and (dig "hostManaged" "enabled" false (.Values.admission | default dict)) (not $host) }}
admission.hostManaged.enabled: the driver runs nvidia-imex, not the hosts
{{- end }}
{{- if and $imex.trustContainerToolkit (not (include "compute-domains.ownChannels" .)) }}
resources.computeDomains.imex.trustContainerToolkit: without imex.isolation=channel, no node withholds devices because of its container toolkit
{{- end }}
{{- if and $host (ne (int ($imex.maxNodesPerDomain | default 18)) 18) }}
resources.computeDomains.imex.maxNodesPerDomain: the hosts run nvidia-imex with the nodes of their nodes_config.cfg
{{- end }}
{{- $changed := list }}
{{- range $key, $default := dict "priorityClassName" nil "podLabels" dict "podAnnotations" dict "resources" (dict "requests" (dict "cpu" "10m" "memory" "24Mi")) "networkPolicy" (dict "enabled" true) }}
{{- $value := get ($values.daemon | default dict) $key }}
{{- if and $value (ne (toJson $value) (toJson $default)) }}
{{- $changed = append $changed (printf "daemon.%s" $key) }}
{{- end }}
{{- end }}
{{- if and $host $changed }}
{{ join ", " $changed }}: the hosts run nvidia-imex, so there are no daemons
{{- end }}
{{- if and (dig "imex" "config" dict .Values.resources.computeDomains | default dict) (include "compute-domains.hostManaged" .) }}
resources.computeDomains.imex.config: the hosts run nvidia-imex; edit their /etc/nvidia-imex/config.cfg
{{- end }}
{{- $always := dict "ComputeDomainCliques" "the nodes of a ComputeDomain are listed in ComputeDomainFabrics"
  "IMEXDaemonsWithDNSNames" "nvidia-imex always gets stable names of its peers" }}
{{- range $gate, $why := $always }}
{{- if eq (toString (get ($values.featureGates | default dict) $gate)) "false" }}
featureGates.{{ $gate }}: {{ $why }}
{{- end }}
{{- end }}
{{- range $name := list "computeDomains" "gpus" }}
{{- if eq (toString (dig "containers" $name "healthcheckPort" "" $values.kubeletPlugin)) "0" }}
kubeletPlugin.containers.{{ $name }}.healthcheckPort: 0 means no probe here, as in the Go driver 0.5.0. Its main branch interprets 0 as "on" since 2026-09-01. Write -1 for no probe, or a port
{{- end }}
{{- end }}
{{- if and .Values.consumableShares (not $gpus) }}
consumableShares: it concerns GPUs, which are not allocated here
{{- end }}
{{- if and .Values.gpuResourcesEnabledOverride (not $gpus) }}
gpuResourcesEnabledOverride: resources.gpus.enabled=false takes precedence
{{- end }}
{{- if and (dig "gpus" "enabled" false (.Values.admission | default dict)) (not $gpus) }}
admission.gpus.enabled: it concerns GPUs, which are not allocated here
{{- end }}
{{- if and .Values.nvidiaCDIHookPath (not $gpus) }}
nvidiaCDIHookPath: no hook is needed without GPUs
{{- end }}
{{- if and (or .Values.gpuIpcSockets (eq false .Values.gpuAdditionalGids)) (not $gpus) }}
gpuIpcSockets, gpuAdditionalGids: they concern GPUs, which are not allocated here
{{- end }}
{{- if and $gpus (dig "containers" "gpus" "additionalXidsToIgnore" "" .Values.kubeletPlugin) (not (include "compute-domains.alphaGate" (list . "NVMLDeviceHealthCheck"))) }}
kubeletPlugin.containers.gpus.additionalXidsToIgnore: no XID is watched without the feature gate NVMLDeviceHealthCheck
{{- end }}
{{- if dig "metrics" "profilePath" "" .Values.controller }}
controller.metrics.profilePath: the controller has no profiling endpoint
{{- end }}
{{- with omit (.Values.webhook | default dict) "enabled" }}
webhook.*: there is no webhook ({{ keys . | sortAlpha | join ", " }}); admission policies in the API server replace it
{{- end }}
{{- if and (hasKey .Values.controller "priorityClassName") (not .Values.controller.priorityClassName) (not .Values.kubeletPlugin.priorityClassName) }}
controller.priorityClassName, kubeletPlugin.priorityClassName: both empty, so the daemons have no priority class either{{ if kindIs "string" (.Values.daemon | default dict).priorityClassName }}, unless daemon.priorityClassName sets one{{ end }}
{{- end }}
{{- if not $gpus }}
{{- range $gate := list "ConsumableShares" "DRAListTypeAttributes" "DeviceMetadata" "DynamicMIG" "FabricManagerPartitioning" "MPSSupport" "NVMLDeviceHealthCheck" "PassthroughSupport" "TimeSlicingSettings" }}
{{- if has (toString (get ($values.featureGates | default dict) $gate)) (list "true" "false") }}
featureGates.{{ $gate }}: it concerns GPUs, which are not allocated here
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
