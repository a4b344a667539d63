{{- define "tiphys.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tiphys.controller" -}}
{{ include "tiphys.fullname" . }}-controller
{{- end -}}

{{/* Objects of the whole cluster: two releases of one name in two namespaces must not share them. */}}
{{- define "tiphys.clusterName" -}}
{{ printf "%s-%s" .Release.Namespace (include "tiphys.controller" .) }}
{{- end -}}

{{- define "tiphys.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "tiphys.labels" -}}
{{ include "tiphys.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tiphys
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tiphys.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "tiphys.controller" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- define "tiphys.engineNamespace" -}}
{{ .Values.engineNamespace | default .Release.Namespace }}
{{- end -}}

{{- define "tiphys.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "tiphys.replicas" -}}
{{ ternary 1 (int .Values.replicas) (eq .Values.mode "shadow") }}
{{- end -}}
