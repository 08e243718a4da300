{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/*
A line for each value that is set and that only the chart dra-driver-nvidia-gpu acts upon. Those that would take something away are
refused instead (validation.yaml).
*/}}
{{- define "compute-domains.withoutEffect" -}}
{{- $values := .Values -}}
{{- $gpus := include "compute-domains.gpus" . -}}
{{- $tag := toString (.Values.image.tag | default "") -}}
{{- if and $tag (eq .Values.image.repository "compute-domains/compute-domains") (ne (trimPrefix "v" $tag) .Chart.AppVersion) }}
image.tag: {{ $tag }} is another version than the chart's; a tag of the other driver's image names none of this one: leave it out
{{- end }}
{{- if and .Values.consumableShares (not $gpus) }}
consumableShares: it is about GPUs, which are not allocated here
{{- end }}
{{- if .Values.maskNvidiaDriverParams }}
maskNvidiaDriverParams: this driver makes no device files through the NVIDIA driver
{{- end }}
{{- if and .Values.gpuResourcesEnabledOverride (not $gpus) }}
gpuResourcesEnabledOverride: resources.gpus.enabled=false decides
{{- end }}
{{- if and (dig "gpus" "enabled" false (.Values.admission | default dict)) (not $gpus) }}
admission.gpus.enabled: it is about GPUs, which are not allocated here
{{- end }}
{{- if and .Values.nvidiaCDIHookPath (not $gpus) }}
nvidiaCDIHookPath: no hook is needed without GPUs
{{- end }}
{{- if and (or .Values.gpuIpcSockets (eq false .Values.gpuAdditionalGids)) (not $gpus) }}
gpuIpcSockets, gpuAdditionalGids: they are about GPUs, which are not allocated here
{{- end }}
{{- if and $gpus (dig "containers" "gpus" "additionalXidsToIgnore" "" .Values.kubeletPlugin) (not (include "compute-domains.alphaGate" (list . "NVMLDeviceHealthCheck"))) }}
kubeletPlugin.containers.gpus.additionalXidsToIgnore: no XID is watched without the feature gate NVMLDeviceHealthCheck
{{- end }}
{{- if dig "metrics" "profilePath" "" .Values.controller }}
controller.metrics.profilePath: the controller has no profiling endpoint
{{- end }}
{{- with omit (.Values.webhook | default dict) "enabled" }}
webhook.*: there is no webhook ({{ keys . | sortAlpha | join ", " }}); what it refused is refused by admission policies, which run in the API server
{{- end }}
{{- if and (hasKey .Values.controller "priorityClassName") (not .Values.controller.priorityClassName) (not .Values.kubeletPlugin.priorityClassName) }}
controller.priorityClassName, kubeletPlugin.priorityClassName: both empty, so the daemons have no priority class either{{ if kindIs "string" (.Values.daemon | default dict).priorityClassName }} but for what daemon.priorityClassName says{{ end }}
{{- end }}
{{- if not $gpus }}
{{- range $gate := list "ConsumableShares" "DRAListTypeAttributes" "DeviceMetadata" "DynamicMIG" "FabricManagerPartitioning" "MPSSupport" "NVMLDeviceHealthCheck" "PassthroughSupport" "TimeSlicingSettings" }}
{{- if hasKey ($values.featureGates | default dict) $gate }}
featureGates.{{ $gate }}: it is about GPUs
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
