{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/* Shared parts of the admission policies. */}}

{{/* The binding of a policy that denies. Takes (list $ name), and true if Helm keeps it with the account of the daemons. */}}
{{- define "compute-domains.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ index . 1 }}
  labels:
    {{- include "compute-domains.labels" (index . 0) | nindent 4 }}
  {{- if and (gt (len .) 2) (index . 2) }}
  {{- include "compute-domains.keptWithDaemons" (index . 0) | nindent 2 }}
  {{- end }}
spec:
  policyName: {{ index . 1 }}
  validationActions: ["Deny"]
{{- end -}}

{{/* The user name of one of our accounts. Takes (list $ "controller" or "kubeletplugin"). */}}
{{- define "compute-domains.user" -}}
{{- $root := index . 0 -}}
system:serviceaccount:{{ include "compute-domains.namespace" $root }}:{{ include "compute-domains.serviceAccountPrefix" $root }}-{{ index . 1 }}
{{- end -}}

{{/*
"true" if a plugin asks the kubelet to retry a failed Prepare. Only then its role allows it to patch pods, and the policy in
policy-waiting-pods.yaml restricts that.
*/}}
{{- define "compute-domains.retryPrepares" -}}
{{- if and (include "compute-domains.plugins" .) (eq (include "compute-domains.word" (list . "kubeletPlugin.retryPrepares" "true")) "true") -}}
true
{{- end -}}
{{- end -}}

{{/* "true" if the controller evicts pods from nodes whose IMEX has failed. Only then its role allows it. */}}
{{- define "compute-domains.evicts" -}}
{{- if and .Values.resources.computeDomains.enabled (gt (int (dig "evictAfterMinutes" 0 (.Values.resources.computeDomains.imex | default dict) | default 0)) 0) -}}
true
{{- end -}}
{{- end -}}

{{/* A CEL condition: the request is for the pod that its token names. Two policies divide the pods with it, so that each request meets one. */}}
{{- define "compute-domains.namesOwnPod" -}}
request.?namespace.orValue('') == '{{ include "compute-domains.namespace" . }}' &&
request.?name.orValue('') == request.userInfo.?extra[?'authentication.kubernetes.io/pod-name'][?0].orValue('')
{{- end -}}

{{/* For metadataRules. */}}
{{- define "compute-domains.metadataVariables" -}}
- name: oldLabels
  expression: oldObject.metadata.?labels.orValue({})
- name: newLabels
  expression: object.metadata.?labels.orValue({})
- name: oldAnnotations
  expression: oldObject.metadata.?annotations.orValue({})
- name: newAnnotations
  expression: object.metadata.?annotations.orValue({})
{{- end -}}

{{/*
The labels and annotations that an UPDATE may change. It may not change others. Takes (dict "unless" a CEL condition under which this does
not apply, "who" and "what" in messages, "labels" list, "annotations" CEL of k, "annotationsInWords" text).
*/}}
{{- define "compute-domains.metadataRules" -}}
{{- $labels := printf "[%s]" (ternary (printf "'%s'" (join "', '" .labels)) "" (gt (len .labels) 0)) -}}
- expression: >-
    {{ .unless }} ||
    (variables.newLabels.all(k, k in {{ $labels }} ||
    (k in variables.oldLabels && variables.oldLabels[k] == variables.newLabels[k])) &&
    variables.oldLabels.all(k, k in {{ $labels }} || k in variables.newLabels))
  reason: Forbidden
  message: {{ .who }} may change no label of {{ .what }}{{ with .labels }} but {{ join " and " . }}{{ end }}
- expression: >-
    {{ .unless }} ||
    (variables.newAnnotations.all(k, {{ .annotations }} ||
    (k in variables.oldAnnotations && variables.oldAnnotations[k] == variables.newAnnotations[k])) &&
    variables.oldAnnotations.all(k, {{ .annotations }} || k in variables.newAnnotations))
  reason: Forbidden
  message: {{ .who }} may change no annotation of {{ .what }} but {{ .annotationsInWords }}
{{- end -}}
