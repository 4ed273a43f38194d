{{- define "ork.name" -}}
{{- ternary .Release.Name (printf "%s-ork" .Release.Name) (contains "ork" .Release.Name) | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "ork.labels" -}}
app.kubernetes.io/name: ork
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Selects the pods of one part: (dict "root" . "part" "api"). */}}
{{- define "ork.selector" -}}
app.kubernetes.io/name: ork
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "ork.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "ork.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "ork.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "ork.tasksNamespace" -}}
{{- .Values.tasks.namespace | default (printf "%s-tasks" .Release.Namespace) }}
{{- end }}

{{- define "ork.tokens" -}}
{{- .Values.tokens.existingSecret | default (printf "%s-tokens" (include "ork.name" .)) }}
{{- end }}

{{- define "ork.internalUrl" -}}
{{- $port := ternary "" (printf ":%v" .Values.service.port) (eq (int .Values.service.port) 80) }}
{{- .Values.internalUrl | default (printf "http://%s.%s.svc%s" (include "ork.name" .) .Release.Namespace $port) }}
{{- end }}

{{/* The project's files, by name. */}}
{{- define "ork.project" -}}
{{- $ork := merge (deepCopy .Values.project.ork) (dict "default_where" "kubernetes") }}
{{- $workers := deepCopy .Values.project.workers }}
{{- if and .Values.tasks.serviceAccount.name (eq $ork.default_where "kubernetes") }}
{{- $account := dict "service_account" .Values.tasks.serviceAccount.name }}
{{- $workers = merge (dict "default" (merge (deepCopy (get $workers "default" | default dict)) $account)) $workers }}
{{- end }}
{{- $files := dict "ork.yaml" (toYaml $ork) }}
{{- if $workers }}{{ $_ := set $files "workers.yaml" (toYaml $workers) }}{{ end }}
{{- if .Values.project.locations }}{{ $_ := set $files "locations.yaml" (toYaml .Values.project.locations) }}{{ end }}
{{- toYaml (merge $files .Values.project.files) }}
{{- end }}

{{/* What all pods of the control plane have: (dict "root" . "part" "api"). */}}
{{- define "ork.podMetadata" -}}
labels:
  {{- include "ork.selector" . | nindent 2 }}
  {{- with .root.Values.podLabels }}{{ toYaml . | nindent 2 }}{{ end }}
annotations:
  checksum/project: {{ include "ork.project" .root | sha256sum }}
  {{- with .root.Values.podAnnotations }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end }}

{{- define "ork.pod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "ork.spread" -}}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "ork.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}

{{/* What all containers of the control plane have. */}}
{{- define "ork.container" -}}
image: {{ include "ork.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- with .Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "ork.env" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- {name: ORK_LOG_FORMAT, value: json}
- {name: ORK_LOG_LEVEL, value: {{ .Values.logLevel }}}
- {name: HOME, value: /tmp}
{{- if .Values.embedded }}
- {name: ORK_STORE, value: "sqlite:/var/lib/ork/state/ork.db"}
{{- else }}
- {name: ORK_STORE_FILE, value: /run/secrets/ork-store/store}
- {name: ORK_OBJECTS, value: {{ .Values.objects.url | quote }}}
{{- end }}
- {name: ORK_KUBERNETES_NAMESPACE, value: {{ include "ork.tasksNamespace" . }}}
- {name: ORK_KUBERNETES_IMAGE, value: {{ include "ork.image" . | quote }}}
{{- with .Values.tasks.objectsSecret }}
- {name: ORK_KUBERNETES_OBJECTS_SECRET, value: {{ . | quote }}}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "ork.mounts" -}}
- {name: home, mountPath: /srv/flows/.ork}
- {name: tmp, mountPath: /tmp}
{{- range $name, $_ := include "ork.project" . | fromYaml }}
- {name: project, mountPath: /srv/flows/{{ $name }}, subPath: {{ $name | replace "/" "__" }}, readOnly: true}
{{- end }}
{{- if .Values.embedded }}
- {name: data, mountPath: /var/lib/ork}
{{- else }}
- {name: store, mountPath: /run/secrets/ork-store, readOnly: true}
{{- end }}
{{- end }}

{{- define "ork.volumes" -}}
- {name: home, emptyDir: {}}
- {name: tmp, emptyDir: {}}
- name: project
  configMap: {name: {{ include "ork.name" . }}-project}
{{- if .Values.embedded }}
- name: data
  persistentVolumeClaim: {claimName: {{ include "ork.name" . }}-data}
{{- else }}
- name: store
  secret:
    secretName: {{ .Values.store.existingSecret }}
    defaultMode: 0440
    items: [{key: {{ .Values.store.key }}, path: store}]
{{- end }}
- name: tokens
  secret: {secretName: {{ include "ork.tokens" . }}, defaultMode: 0440}
{{- end }}

{{/* Registers a token of the Secret: (dict "root" . "role" "admin"). It exists in this container only. */}}
{{- define "ork.registerToken" -}}
- name: {{ .role }}-token
  {{- include "ork.container" .root | nindent 2 }}
  args: [token, create, --role, {{ .role }}, --name, helm, --from-file, /run/secrets/ork-tokens/{{ .role }}]
  env: {{- include "ork.env" .root | nindent 4 }}
  volumeMounts:
    {{- include "ork.mounts" .root | nindent 4 }}
    - {name: tokens, mountPath: /run/secrets/ork-tokens, readOnly: true}
{{- end }}

{{- define "ork.apiArgs" -}}
{{- $name := include "ork.name" . }}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) "$(POD_IP)" }}
{{- if .Values.ingress.enabled }}{{ $hosts = append $hosts .Values.ingress.host }}{{ end }}
- serve
- --no-scheduler
- --host
- {{ .Values.api.listen | quote }}
- --port
- {{ .Values.api.port | quote }}
{{- range concat $hosts .Values.api.allowedHosts | uniq }}
- --allowed-host
- {{ . | quote }}
{{- end }}
{{- range .Values.api.trustedProxies }}
- --trusted-proxy
- {{ . | quote }}
{{- end }}
{{- range .Values.api.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "ork.apiProbes" -}}
ports:
  - {name: http, containerPort: {{ .Values.api.port }}}
startupProbe:
  httpGet: {path: /healthz, port: http, httpHeaders: [{name: Host, value: localhost}]}
  failureThreshold: 60
  periodSeconds: 2
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: http, httpHeaders: [{name: Host, value: localhost}]}
  periodSeconds: 30
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: http, httpHeaders: [{name: Host, value: localhost}]}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}

{{- define "ork.schedulerArgs" -}}
- serve
- --no-api
{{- if .Values.scheduler.drain }}
- --drain
{{- end }}
{{- range .Values.scheduler.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* Mistakes that a schema cannot name well. */}}
{{- define "ork.check" -}}
{{- if not .Values.embedded }}
{{- if not .Values.store.existingSecret }}
{{- fail "\n\nstore.existingSecret is not set. Name a Secret whose key `store` is the URL of Postgres:\n\n  kubectl -n NAMESPACE create secret generic ork-store --from-literal=store='postgresql://USER:PASSWORD@HOST/DATABASE?sslmode=verify-full'\n  helm … --set store.existingSecret=ork-store\n\nFor a trial without a database: --set embedded=true\n" }}
{{- end }}
{{- if not .Values.objects.url }}
{{- fail "\n\nobjects.url is not set. Name the bucket of specs, logs and outputs, such as --set objects.url='s3://BUCKET/ork?region=eu-central-1'\n\nFor a trial without a bucket: --set embedded=true\n" }}
{{- end }}
{{- else if eq .Values.scheduler.mode "tick" }}
{{- fail "\n\nscheduler.mode=tick needs a database and a bucket: an embedded installation is one pod, which runs anyway.\n" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "\n\ningress.host is not set: Ork responds only to host names that it knows.\n" }}
{{- end }}
{{- if eq (include "ork.tasksNamespace" .) .Release.Namespace }}
{{- fail "\n\ntasks.namespace is the release's own namespace. Tasks need one of their own: who can create pods beside the control plane can read its Secrets.\n" }}
{{- end }}
{{- end }}
