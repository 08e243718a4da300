{{- define "name" -}}{{ default .Chart.Name .Values.nameOverride }}{{- end -}}
{{- define "fullname" -}}
{{- $name := include "name" . -}}
{{- if contains $name .Release.Name -}}{{ .Release.Name }}{{- else -}}{{ .Release.Name }}-{{ $name }}{{- end -}}
{{- end -}}
{{- define "account" -}}{{ include "fullname" . }}-service-account{{- end -}}
{{- define "image" -}}{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}{{- end -}}
{{- define "labels" -}}
helm.sh/chart: {{ include "name" . }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "own" . }}
{{- end -}}
{{- define "own" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
