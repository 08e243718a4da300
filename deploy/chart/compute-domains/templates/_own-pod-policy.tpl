{{/*
A program of ours reports on its own pod, so it has to be allowed to change pods. This leaves it its own pod, and there what
it reports. Takes (dict "root" $ "name" of the policy "condition" its name "users" list "who" in messages "label" that it may
write or "" "annotations" CEL of k "annotationsInWords" text).
*/}}
{{- define "compute-domains.ownPodPolicy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}
  labels:
    {{- include "compute-domains.labels" .root | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: ["v1"]
        operations: ["CREATE", "UPDATE", "DELETE"]
        resources: ["pods"]
  matchConditions:
    - name: {{ .condition }}
      expression: >-
        request.userInfo.username in [{{ range $i, $user := .users }}{{ if $i }}, {{ end }}'{{ $user }}'{{ end }}]
  variables:
    - name: podName
      expression: >-
        request.userInfo.?extra[?'authentication.kubernetes.io/pod-name'][?0].orValue('')
    - name: podUID
      expression: >-
        request.userInfo.?extra[?'authentication.kubernetes.io/pod-uid'][?0].orValue('')
    - name: isOwnPod
      expression: >-
        request.operation == 'UPDATE' && variables.podUID != '' &&
        oldObject.metadata.name == variables.podName && oldObject.metadata.uid == variables.podUID
    - name: oldLabels
      expression: oldObject.metadata.?labels.orValue({})
    - name: newLabels
      expression: object.metadata.?labels.orValue({})
    - name: oldAnnotations
      expression: oldObject.metadata.?annotations.orValue({})
    - name: newAnnotations
      expression: object.metadata.?annotations.orValue({})
  validations:
    - expression: variables.isOwnPod
      reason: Forbidden
      message: {{ .who }} may change its own pod only, with the token of that pod
    - expression: >-
        !variables.isOwnPod ||
        (object.spec == oldObject.spec &&
        object.metadata.?finalizers == oldObject.metadata.?finalizers &&
        object.metadata.?ownerReferences == oldObject.metadata.?ownerReferences)
      reason: Forbidden
      message: {{ .who }} may change labels and annotations of its pod only
    - expression: >-
        !variables.isOwnPod ||
        (variables.newLabels.all(k, k in [{{ with .label }}'{{ . }}'{{ end }}] ||
        (k in variables.oldLabels && variables.oldLabels[k] == variables.newLabels[k])) &&
        variables.oldLabels.all(k, k in [{{ with .label }}'{{ . }}'{{ end }}] || k in variables.newLabels))
      reason: Forbidden
      message: {{ .who }} may change no label of its pod{{ with .label }} but {{ . }}{{ end }}
    - expression: >-
        !variables.isOwnPod ||
        (variables.newAnnotations.all(k, {{ .annotations }} ||
        (k in variables.oldAnnotations && variables.oldAnnotations[k] == variables.newAnnotations[k])) &&
        variables.oldAnnotations.all(k, {{ .annotations }} || k in variables.newAnnotations))
      reason: Forbidden
      message: {{ .who }} may change no annotation of its pod but {{ .annotationsInWords }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "compute-domains.labels" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: ["Deny"]
{{- end -}}
