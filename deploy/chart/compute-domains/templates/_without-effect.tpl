{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/*
A line for each value that is set and that only the chart dra-driver-nvidia-gpu acts upon. Those that would take something away are
refused instead (validation.yaml).
*/}}
{{- define "compute-domains.withoutEffect" -}}
{{- $values := .Values -}}
{{- $tag := toString (.Values.image.tag | default "") -}}
{{- if and $tag (eq .Values.image.repository "compute-domains/compute-domains") (ne (trimPrefix "v" $tag) .Chart.AppVersion) }}
image.tag: {{ $tag }} is another version than the chart's; a tag of the other driver's image names none of this one: leave it out
{{- end }}
{{- if .Values.consumableShares }}
consumableShares: it is about GPUs, which this driver does not allocate
{{- end }}
{{- if .Values.maskNvidiaDriverParams }}
maskNvidiaDriverParams: this driver makes no device files through the NVIDIA driver
{{- end }}
{{- if kindIs "bool" .Values.gpuResourcesEnabledOverride }}
gpuResourcesEnabledOverride: false is what this driver does in any case; GPUs stay with the device plugin, or with the other chart
{{- end }}
{{- if .Values.nvidiaCDIHookPath }}
nvidiaCDIHookPath: no hook is needed
{{- end }}
{{- if dig "metrics" "profilePath" "" .Values.controller }}
controller.metrics.profilePath: the controller has no profiling endpoint
{{- end }}
{{- if dig "metrics" "gpuHttpEndpoint" "" .Values.kubeletPlugin }}
kubeletPlugin.metrics.gpuHttpEndpoint: there is no program for GPUs, so nothing listens there
{{- end }}
{{- if dig "containers" "gpus" nil .Values.kubeletPlugin }}
kubeletPlugin.containers.gpus: there is no container for GPUs
{{- end }}
{{- with omit (.Values.webhook | default dict) "enabled" }}
webhook.*: there is no webhook ({{ keys . | sortAlpha | join ", " }}); what it refused is refused by admission policies, which run in the API server
{{- end }}
{{- if and (hasKey .Values.controller "priorityClassName") (not .Values.controller.priorityClassName) (not .Values.kubeletPlugin.priorityClassName) }}
controller.priorityClassName, kubeletPlugin.priorityClassName: both empty, so the daemons have no priority class either{{ if kindIs "string" (.Values.daemon | default dict).priorityClassName }} but for what daemon.priorityClassName says{{ end }}
{{- end }}
{{- range $gate := list "ConsumableShares" "DRAListTypeAttributes" "DeviceMetadata" "DynamicMIG" "FabricManagerPartitioning" "MPSSupport" "NVMLDeviceHealthCheck" "PassthroughSupport" "TimeSlicingSettings" }}
{{- if hasKey ($values.featureGates | default dict) $gate }}
featureGates.{{ $gate }}: it is about GPUs
{{- end }}
{{- end }}
{{- end -}}
