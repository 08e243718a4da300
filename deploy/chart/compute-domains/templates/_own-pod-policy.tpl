{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{/*
Our programs report on their own pods, so they need permission to change pods. This policy restricts each of them to its own pod, and to
the labels and annotations that it reports. Takes (dict "root" $ "name" of the policy "condition" its name "users" list "who" in messages,
and the arguments of metadataRules; "kept" true if Helm keeps it with the account of the daemons; "named" true if another policy restricts
the requests for pods that the token does not name).
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
        # Its role grants no subresources of pods. If an administrator extends the role, this policy still denies them.
        resources: ["pods", "pods/*"]
  matchConditions:
    - name: {{ .condition }}
      expression: >-
        request.userInfo.username in [{{ range $i, $user := .users }}{{ if $i }}, {{ end }}'{{ $user }}'{{ end }}]
    {{- if .named }}
    # policy-waiting-pods.yaml has all other requests for pods.
    - name: is-for-its-own-pod
      expression: >-
        {{- include "compute-domains.namesOwnPod" .root | nindent 8 }}
    {{- end }}
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
