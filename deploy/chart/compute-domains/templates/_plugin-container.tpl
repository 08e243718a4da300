{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/*
The container of a kubelet plugin. Takes a dict:
  root                        $
  name, program               of the container
  container                   its values: resources, securityContext
  env                         its environment, as YAML
  mounts                      volumeMounts that only this plugin has, as YAML; may be empty
  portPrefix                  of the names of its ports
  metricsPort                 empty: other pods cannot reach its metrics
  healthPort                  0 or less: no probes
  user                        dict of the user to run as, if the pod does not set one
*/}}
{{- define "compute-domains.pluginContainer" -}}
{{- $health := gt .healthPort 0 -}}
- name: {{ .name }}
  image: {{ include "compute-domains.image" .root }}
  imagePullPolicy: {{ include "compute-domains.pullPolicy" .root }}
  command: [{{ .program | quote }}, "-v", "$(LOG_VERBOSITY)"]
  terminationMessagePolicy: FallbackToLogsOnError
  env:
    {{- .env | nindent 4 }}
  volumeMounts:
    - name: plugins-registry
      mountPath: {{ include "compute-domains.registrarPath" .root }}
    # The GPU plugin installs the hook for containers with GPUs there. It runs on the host.
    - name: plugins
      mountPath: {{ include "compute-domains.pluginsPath" .root }}
    - name: cdi
      mountPath: /var/run/cdi
    - name: driver-root
      mountPath: /driver-root
      readOnly: true
      mountPropagation: HostToContainer
    {{- with .mounts | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- if .root.Values.altProcDevices }}
    - name: alt-proc-devices
      mountPath: /alt-proc-devices
      readOnly: true
    {{- end }}
  {{- if or $health .metricsPort }}
  ports:
    {{- with .metricsPort }}
    - name: {{ $.portPrefix }}metrics
      containerPort: {{ . }}
      protocol: TCP
    {{- end }}
    {{- if $health }}
    - name: {{ .portPrefix }}healthcheck
      containerPort: {{ .healthPort }}
      protocol: TCP
    {{- end }}
  {{- end }}
  {{- if $health }}
  startupProbe:
    httpGet:
      path: /healthz
      port: {{ .healthPort }}
    periodSeconds: 1
    timeoutSeconds: 10
    failureThreshold: 600
  livenessProbe:
    httpGet:
      path: /healthz
      port: {{ .healthPort }}
    periodSeconds: 10
    timeoutSeconds: 10
    failureThreshold: 3
  # Ready: registered with the kubelet, and the devices are published.
  readinessProbe:
    httpGet:
      path: /readyz
      port: {{ .healthPort }}
    periodSeconds: 5
    timeoutSeconds: 10
  {{- end }}
  {{- with .container.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with merge (dict) .container.securityContext .user }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
