/**
 * Fields of Kubernetes objects that our manifests may use, with their types: a closed list, so that a misspelt field, a
 * string for a number or a forgotten one fails without a cluster. Only what is used stands here: whoever needs another
 * field adds it, and `test/kubernetes.test.ts` compares the list with the published schemas where they are there.
 *
 * A name with "!" is required. A list has one shape; `{ '*': shape }` is a map.
 */
export type Shape = string | readonly [Shape] | { readonly [field: string]: Shape }

const META = { 'name!': 'string', labels: { '*': 'string' } } as const
const LABELS = { matchLabels: { '*': 'string' } } as const
const TARGET = { apiVersion: 'string', 'kind!': 'string', 'name!': 'string' } as const
const object = (spec: Shape, isRequired = false): Shape => ({
  'apiVersion!': 'string',
  'kind!': 'string',
  'metadata!': META,
  [isRequired ? 'spec!' : 'spec']: spec,
})

const PROBE = {
  httpGet: { path: 'string', 'port!': 'int-or-string' },
  periodSeconds: 'integer',
  timeoutSeconds: 'integer',
  failureThreshold: 'integer',
} as const

const CONTAINER = {
  'name!': 'string',
  image: 'string',
  args: ['string'],
  env: [{ 'name!': 'string', value: 'string' }],
  ports: [{ name: 'string', 'containerPort!': 'integer', protocol: 'string' }],
  startupProbe: PROBE,
  livenessProbe: PROBE,
  readinessProbe: PROBE,
  lifecycle: { preStop: { exec: { command: ['string'] } } },
  resources: { requests: { '*': 'quantity' }, limits: { '*': 'quantity' } },
  securityContext: {
    allowPrivilegeEscalation: 'boolean',
    readOnlyRootFilesystem: 'boolean',
    capabilities: { drop: ['string'] },
  },
  volumeMounts: [{ 'name!': 'string', 'mountPath!': 'string', readOnly: 'boolean' }],
} as const

const VOLUME = {
  'name!': 'string',
  configMap: { name: 'string' },
  secret: { secretName: 'string', optional: 'boolean', defaultMode: 'integer' },
  emptyDir: { medium: 'string', sizeLimit: 'quantity' },
  persistentVolumeClaim: { 'claimName!': 'string', readOnly: 'boolean' },
} as const

const POD = {
  serviceAccountName: 'string',
  automountServiceAccountToken: 'boolean',
  enableServiceLinks: 'boolean',
  terminationGracePeriodSeconds: 'integer',
  nodeSelector: { '*': 'string' },
  tolerations: [{ key: 'string', operator: 'string', value: 'string', effect: 'string' }],
  securityContext: {
    runAsNonRoot: 'boolean',
    runAsUser: 'integer',
    runAsGroup: 'integer',
    fsGroup: 'integer',
    seccompProfile: { 'type!': 'string' },
  },
  topologySpreadConstraints: [
    { 'maxSkew!': 'integer', 'topologyKey!': 'string', 'whenUnsatisfiable!': 'string', labelSelector: LABELS },
  ],
  'containers!': [CONTAINER],
  volumes: [VOLUME],
} as const

const PEER = {
  namespaceSelector: LABELS,
  podSelector: LABELS,
  ipBlock: { 'cidr!': 'string' },
} as const
const POLICY_PORT = { protocol: 'string', port: 'int-or-string' } as const

const SCALING_RULE = {
  stabilizationWindowSeconds: 'integer',
  policies: [{ 'type!': 'string', 'value!': 'integer', 'periodSeconds!': 'integer' }],
} as const
const BEHAVIOR = { scaleUp: SCALING_RULE, scaleDown: SCALING_RULE } as const

export const KUBERNETES_FIELDS: Readonly<Record<string, Shape>> = {
  'v1 Namespace': { 'apiVersion!': 'string', 'kind!': 'string', 'metadata!': META },
  'v1 ConfigMap': { 'apiVersion!': 'string', 'kind!': 'string', 'metadata!': META, data: { '*': 'string' } },
  'v1 ServiceAccount': { 'apiVersion!': 'string', 'kind!': 'string', 'metadata!': META },
  'v1 Service': object({
    clusterIP: 'string',
    publishNotReadyAddresses: 'boolean',
    selector: { '*': 'string' },
    ports: [{ name: 'string', 'port!': 'integer', targetPort: 'int-or-string' }],
  }),
  'apps/v1 Deployment': object(
    {
      replicas: 'integer',
      'selector!': LABELS,
      strategy: { type: 'string', rollingUpdate: { maxSurge: 'int-or-string', maxUnavailable: 'int-or-string' } },
      'template!': { metadata: { labels: { '*': 'string' } }, spec: POD },
    },
    true,
  ),
  'policy/v1 PodDisruptionBudget': object({ maxUnavailable: 'int-or-string', selector: LABELS }),
  'networking.k8s.io/v1 NetworkPolicy': object({
    podSelector: LABELS,
    policyTypes: ['string'],
    ingress: [{ from: [PEER], ports: [POLICY_PORT] }],
    egress: [{ to: [PEER], ports: [POLICY_PORT] }],
  }),
  'rbac.authorization.k8s.io/v1 Role': {
    'apiVersion!': 'string',
    'kind!': 'string',
    'metadata!': META,
    rules: [{ apiGroups: ['string'], resources: ['string'], resourceNames: ['string'], 'verbs!': ['string'] }],
  },
  'rbac.authorization.k8s.io/v1 RoleBinding': {
    'apiVersion!': 'string',
    'kind!': 'string',
    'metadata!': META,
    'roleRef!': { 'apiGroup!': 'string', 'kind!': 'string', 'name!': 'string' },
    subjects: [{ 'kind!': 'string', 'name!': 'string', namespace: 'string' }],
  },
  'autoscaling/v2 HorizontalPodAutoscaler': object(
    {
      'scaleTargetRef!': TARGET,
      minReplicas: 'integer',
      'maxReplicas!': 'integer',
      metrics: [
        {
          'type!': 'string',
          resource: { 'name!': 'string', 'target!': { 'type!': 'string', averageUtilization: 'integer' } },
          external: {
            'metric!': { 'name!': 'string', selector: LABELS },
            'target!': { 'type!': 'string', averageValue: 'quantity' },
          },
        },
      ],
      behavior: BEHAVIOR,
    },
    true,
  ),
  'keda.sh/v1alpha1 ScaledObject': object(
    {
      'scaleTargetRef!': { apiVersion: 'string', kind: 'string', 'name!': 'string' },
      pollingInterval: 'integer',
      cooldownPeriod: 'integer',
      minReplicaCount: 'integer',
      maxReplicaCount: 'integer',
      fallback: { 'failureThreshold!': 'integer', 'replicas!': 'integer' },
      advanced: { horizontalPodAutoscalerConfig: { behavior: BEHAVIOR } },
      'triggers!': [
        {
          'type!': 'string',
          metricType: 'string',
          'metadata!': { '*': 'string' },
          authenticationRef: { 'name!': 'string' },
        },
      ],
    },
    true,
  ),
  'keda.sh/v1alpha1 TriggerAuthentication': object(
    { secretTargetRef: [{ 'parameter!': 'string', 'name!': 'string', 'key!': 'string' }] },
    true,
  ),
  'monitoring.coreos.com/v1 ServiceMonitor': object(
    { jobLabel: 'string', 'selector!': LABELS, 'endpoints!': [{ port: 'string', path: 'string', interval: 'string' }] },
    true,
  ),
  'monitoring.coreos.com/v1 PrometheusRule': object(
    {
      groups: [
        {
          'name!': 'string',
          interval: 'string',
          rules: [
            {
              alert: 'string',
              record: 'string',
              'expr!': 'int-or-string',
              for: 'string',
              labels: { '*': 'string' },
              annotations: { '*': 'string' },
            },
          ],
        },
      ],
    },
    true,
  ),
}

/** What is wrong with an object, by its path; nothing when every field is known and of its type. */
export function fieldProblems(object: { readonly apiVersion?: unknown; readonly kind?: unknown }): string[] {
  const name = `${String(object.apiVersion)} ${String(object.kind)}`
  const shape = KUBERNETES_FIELDS[name]
  // Objects may carry the namespace that an overlay puts there; nobody writes it by hand.
  return shape === undefined ? [`${name} is not a kind that we use`] : problemsAt(object, shape, name)
}

function problemsAt(value: unknown, shape: Shape, at: string): string[] {
  if (typeof shape === 'string') return isOf(value, shape) ? [] : [`${at} is not ${shape}`]
  if (Array.isArray(shape)) {
    const each = (shape as readonly [Shape])[0]
    return Array.isArray(value)
      ? value.flatMap((one, i) => problemsAt(one, each, `${at}[${i}]`))
      : [`${at} is not a list`]
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at} is not an object`]
  const fields = shape as { readonly [field: string]: Shape }
  const every = fields['*']
  if (every !== undefined) return Object.entries(value).flatMap(([key, one]) => problemsAt(one, every, `${at}.${key}`))
  const missing = Object.keys(fields)
    .filter((field) => field.endsWith('!') && !(field.slice(0, -1) in value))
    .map((field) => `${at}.${field.slice(0, -1)} is missing`)
  const wrong = Object.entries(value).flatMap(([key, one]) => {
    const known = fields[key] ?? fields[`${key}!`]
    return known === undefined ? [`${at}.${key} is not a field`] : problemsAt(one, known, `${at}.${key}`)
  })
  return [...missing, ...wrong]
}

const QUANTITY = /^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/

function isOf(value: unknown, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'boolean') return typeof value === 'boolean'
  if (type === 'int-or-string') return typeof value === 'string' || Number.isInteger(value)
  if (type === 'quantity') return typeof value === 'string' && QUANTITY.test(value)
  return typeof value === 'string'
}
