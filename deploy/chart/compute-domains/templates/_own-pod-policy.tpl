{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/*
A program of ours reports on its own pod, so it has to be allowed to change pods. This leaves it its own pod, and there what
it reports. Takes (dict "root" $ "name" of the policy "condition" its name "users" list "who" in messages, and what metadataRules takes;
"kept" true where Helm keeps it with the account of the daemons).
*/}}
{{- define "compute-domains.ownPodPolicy" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}
  labels:
    {{- include "compute-domains.labels" .root | nindent 4 }}
  {{- if .kept }}
  {{- include "compute-domains.keptWithDaemons" .root | nindent 2 }}
  {{- end }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [""]
        apiVersions: ["v1"]
        operations: ["CREATE", "UPDATE", "DELETE", "CONNECT"]
        # Its role grants nothing of a pod's subresources. Should somebody widen it, they stay closed.
        resources: ["pods", "pods/*"]
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
        request.operation == 'UPDATE' && request.?subResource.orValue('') == '' && variables.podUID != '' &&
        oldObject.metadata.name == variables.podName && oldObject.metadata.uid == variables.podUID
    {{- include "compute-domains.metadataVariables" . | nindent 4 }}
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
    {{- include "compute-domains.metadataRules" (merge (dict "unless" "!variables.isOwnPod" "what" "its pod") .) | nindent 4 }}
---
{{ include "compute-domains.policyBinding" (list .root .name .kept) }}
{{- end -}}
