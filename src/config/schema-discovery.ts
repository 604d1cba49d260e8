import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { durationMs, httpUrl, item } from './schema-fields.ts'

/** Who knows a pool's replicas, where nobody wants to list them: DNS, or Kubernetes (a service, or an InferencePool). */

const PORT_MAX = 65_535

/** What the addresses of all of them have in common. */
const address = {
  scheme: Type.Enum(['http', 'https'], { default: 'http', description: 'Scheme of the replicas\u2019 addresses.' }),
  path: Type.String({
    default: '/v1',
    pattern: '^(/[A-Za-z0-9._~-]+)*$',
    description: 'Path of the replicas\u2019 API up to and including the version; empty for `http-oip`.',
  }),
}

const DnsSchema = item(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\\.?$',
      maxLength: 253,
      description: 'DNS name of a headless service or a round-robin entry; each of its addresses is a replica.',
    }),
    port: Type.Integer({ minimum: 1, maximum: PORT_MAX, default: 8_000, description: 'Port of every replica.' }),
    record: Type.Enum(['address', 'service'], {
      default: 'address',
      description:
        'Kind of DNS record. `address`: A and AAAA records, with `port`. `service`: SRV records, which have ports of their own.',
    }),
    ...address,
    everyMs: durationMs(defaults.DISCOVERY_EVERY_MS, {
      minimum: 100,
      description:
        'Longest time between two DNS queries, in milliseconds; the answer\u2019s time to live if that is shorter.',
    }),
    servers: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        maxItems: 8,
        description: 'Name servers to ask, as `10.0.0.10` or `10.0.0.10:53`; the system\u2019s if absent.',
      }),
    ),
  },
  'Replicas found by DNS.',
)

/** How the Kubernetes API is reached and who asks. */
const apiServer = {
  apiUrl: Type.Optional(httpUrl('Address of the Kubernetes API server; `https://kubernetes.default.svc` if absent.')),
  tokenFile: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'File with the token, read anew for every call; the pod\u2019s service account if absent.',
    }),
  ),
  caFile: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'PEM file of the certificate authority to trust; the pod\u2019s service account if absent.',
    }),
  ),
}

const namespace = (description: string) =>
  Type.String({ pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$', maxLength: 63, default: 'default', description })

const KubernetesSchema = item(
  {
    service: Type.String({
      pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$',
      maxLength: 253,
      description: 'Service whose endpoints are the replicas. Reading it needs `list` and `watch` on endpointslices.',
    }),
    namespace: namespace('Namespace of the service.'),
    port: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: PORT_MAX }), Type.String({ minLength: 1, maxLength: 63 })], {
        description:
          'Port of the replicas, by number or by its name in the service; the service\u2019s first port if absent.',
      }),
    ),
    ...address,
    ...apiServer,
  },
  'Replicas found through the Kubernetes API: changes are seen in milliseconds, and a replica is drained when its pod terminates.',
)

const InferencePoolSchema = item(
  {
    pool: Type.String({
      pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$',
      maxLength: 253,
      description:
        'InferencePool (`inference.networking.k8s.io/v1`) whose pods are the replicas, one for each target port. Reading it needs `list` and `watch` on inferencepools and pods.',
    }),
    namespace: namespace('Namespace of the pool and its pods.'),
    ...address,
    ...apiServer,
  },
  'Replicas found through an InferencePool of the Gateway API Inference Extension, as with `kubernetes`.',
)

export const DiscoverSchema = item(
  {
    dns: Type.Optional(DnsSchema),
    kubernetes: Type.Optional(KubernetesSchema),
    inferencePool: Type.Optional(InferencePoolSchema),
  },
  'Source of replicas: `dns`, `kubernetes` or `inferencePool`. Replicas listed under `replicas` are used besides.',
)
