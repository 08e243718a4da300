{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/* The GPU half of the kubelet plugin's pod. */}}

{{/* kubeletPlugin.containers.gpus, with a default for each member, because older values files do not have it. */}}
{{- define "compute-domains.gpuValues" -}}
{{- include "compute-domains.members" (list . "kubeletPlugin.containers.gpus" (dict
  "env" list
  "securityContext" (dict "privileged" true "readOnlyRootFilesystem" true)
  "resources" (dict "requests" (dict "cpu" "10m" "memory" "32Mi"))
  "healthcheckPort" 51516
  "additionalXidsToIgnore" ""
  "checkpointLayout" "auto")) -}}
{{- end -}}

{{/* The port on which other pods reach its metrics; empty if they cannot. */}}
{{- define "compute-domains.gpuPort" -}}
{{- $metrics := include "compute-domains.pluginMetrics" . | fromJson -}}
{{- if $metrics.enabled -}}
{{- include "compute-domains.port" $metrics.gpuHttpEndpoint -}}
{{- end -}}
{{- end -}}

{{/* The container. Takes (list $ (dict of the user to run as, if the pod does not set one)). */}}
{{- define "compute-domains.gpuContainer" -}}
{{- $root := index . 0 -}}
{{- $container := include "compute-domains.gpuValues" $root | fromJson -}}
{{- include "compute-domains.pluginContainer" (dict
  "root" $root
  "name" "gpus"
  "program" "gpu-kubelet-plugin"
  "container" $container
  "env" (include "compute-domains.env" (dict "ours" (include "compute-domains.gpuEnv" $root) "users" $container.env))
  "mounts" (include "compute-domains.gpuMounts" $root)
  "portPrefix" "gpu-"
  "metricsPort" (include "compute-domains.gpuPort" $root)
  "healthPort" (int $container.healthcheckPort)
  "user" (index . 1)) -}}
{{- end -}}

{{- define "compute-domains.gpuMounts" -}}
{{- if ne (clean (.Values.nvidiaDriverRoot | default "/")) "/" }}
# The configuration of the host's container runtime, which may give GPUs to pods without a claim.
- name: host-root
  mountPath: /host-root
  readOnly: true
  mountPropagation: HostToContainer
{{- end }}
{{- end -}}

{{- define "compute-domains.gpuEnv" -}}
{{- $plugin := .Values.kubeletPlugin }}
{{- $container := include "compute-domains.gpuValues" . | fromJson -}}
- name: LOG_VERBOSITY
  value: {{ include "compute-domains.logVerbosity" . | quote }}
{{- with .Values.logFormat }}
- name: LOGGING_FORMAT
  value: {{ . | quote }}
{{- end }}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: POD_NODE_SELECTOR
  value: {{ include "compute-domains.podNodeSelector" . | quote }}
- name: NVIDIA_DRIVER_ROOT
  value: {{ clean (.Values.nvidiaDriverRoot | default "/") | quote }}
{{- with .Values.nvidiaCDIHookPath }}
- name: NVIDIA_CDI_HOOK_PATH
  value: {{ . | quote }}
{{- end }}
{{- if .Values.gpuIpcSockets }}
- name: GPU_IPC_SOCKETS
  value: "true"
{{- end }}
{{- if eq false .Values.gpuAdditionalGids }}
- name: GPU_ADDITIONAL_GIDS
  value: "false"
{{- end }}
{{- if eq "true" (toString .Values.maskNvidiaDriverParams) }}
- name: MASK_NVIDIA_DRIVER_PARAMS
  value: "true"
{{- end }}
{{- if .Values.altProcDevices }}
- name: ALT_PROC_DEVICES_PATH
  value: /alt-proc-devices
{{- end }}
- name: CDI_ROOT
  value: /var/run/cdi
- name: KUBELET_REGISTRAR_DIRECTORY_PATH
  value: {{ include "compute-domains.registrarPath" . | quote }}
- name: KUBELET_PLUGINS_DIRECTORY_PATH
  value: {{ include "compute-domains.pluginsPath" . | quote }}
- name: CHECKPOINT_LAYOUT
  value: {{ $container.checkpointLayout | quote }}
{{- with $container.additionalXidsToIgnore }}
- name: ADDITIONAL_XIDS_TO_IGNORE
  value: {{ . | quote }}
{{- end }}
{{- if gt (int $container.healthcheckPort) 0 }}
- name: HEALTHCHECK_PORT
  value: {{ int $container.healthcheckPort | quote }}
{{- end }}
{{- $metrics := include "compute-domains.pluginMetrics" . | fromJson }}
{{- if $metrics.enabled }}
- name: HTTP_ENDPOINT
  value: {{ $metrics.gpuHttpEndpoint | quote }}
- name: METRICS_PATH
  value: {{ $metrics.metricsPath | quote }}
{{- end }}
- name: KUBE_API_QPS
  value: {{ dig "kubeAPI" "qps" 50 $plugin | int | quote }}
- name: KUBE_API_BURST
  value: {{ dig "kubeAPI" "burst" 100 $plugin | int | quote }}
{{- if include "compute-domains.retryPrepares" . }}
- name: RETRY_PREPARES
  value: "true"
{{- end }}
{{- with include "compute-domains.featureGates" . }}
- name: FEATURE_GATES
  value: {{ . | quote }}
{{- end }}
# Otherwise NVIDIA's container runtime would give the container all GPUs.
- name: NVIDIA_VISIBLE_DEVICES
  value: void
# The container sees the division of GPUs into MIG devices.
- name: NVIDIA_MIG_CONFIG_DEVICES
  value: all
{{- end -}}

{{/*
Refuses feature gates that this version does not implement, if GPUs are allocated: the plugin would ignore what a claim requests by such a
gate. The programs refuse the same gates (gpu_driver_check_gates).
*/}}
{{- define "compute-domains.refuseGpuGates" -}}
{{- range $gate := list "ConsumableShares" "DRAListTypeAttributes" "DeviceMetadata" "DynamicMIG" "FabricManagerPartitioning" "MPSSupport" "PassthroughSupport" -}}
{{- if include "compute-domains.alphaGate" (list $ $gate) -}}
{{- fail (printf "feature gate %s is on, but this version does not implement it for GPUs: switch it off (featureGates.%s=false)." $gate $gate) -}}
{{- end -}}
{{- end -}}
{{- end -}}
