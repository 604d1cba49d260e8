import Type from 'typebox'
import * as defaults from './defaults.ts'
import { durationMs, httpUrl, item } from './schema-fields.ts'

/** Who knows a pool's replicas, where nobody wants to list them: DNS, or Kubernetes. */

const PORT_MAX = 65_535

/** What the addresses of all of them have in common. */
const address = {
  scheme: Type.Enum(['http', 'https'], { default: 'http', description: 'How they are reached.' }),
  path: Type.String({
    default: '/v1',
    pattern: '^(/[A-Za-z0-9._~-]+)*$',
    description: 'Path of their API, up to and with the version; empty for `http-oip`.',
  }),
}

const DnsSchema = item(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\\.?$',
      maxLength: 253,
      description: 'Every address of this name is a replica: a headless service, or a round-robin entry.',
    }),
    port: Type.Integer({ minimum: 1, maximum: PORT_MAX, default: 8_000, description: 'Port of every replica.' }),
    record: Type.Enum(['address', 'service'], {
      default: 'address',
      description: '`address`: A and AAAA records with `port`. `service`: SRV records, which bring their own ports.',
    }),
    ...address,
    everyMs: durationMs(defaults.DISCOVERY_EVERY_MS, {
      minimum: 100,
      description: 'Asked again at least this often; sooner where the answer\u2019s time to live is shorter.',
    }),
    servers: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        minItems: 1,
        maxItems: 8,
        description: 'Name servers to ask, as `10.0.0.10` or `10.0.0.10:53`; the system\u2019s own if absent.',
      }),
    ),
  },
  'Replicas by DNS.',
)

const KubernetesSchema = item(
  {
    service: Type.String({
      pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$',
      maxLength: 253,
      description: 'Every endpoint of this service is a replica. Needs `list` and `watch` on endpointslices.',
    }),
    namespace: Type.String({
      pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
      maxLength: 63,
      default: 'default',
      description: 'Where the service is.',
    }),
    port: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: PORT_MAX }), Type.String({ minLength: 1, maxLength: 63 })], {
        description: 'The port, by its number or its name in the service; the first one if absent.',
      }),
    ),
    ...address,
    apiUrl: Type.Optional(
      httpUrl('The API server; the cluster\u2019s own, `https://kubernetes.default.svc`, if absent.'),
    ),
    tokenFile: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'File with the token; the pod\u2019s own if absent. Read for every call.',
      }),
    ),
    caFile: Type.Optional(
      Type.String({ minLength: 1, description: 'PEM file of the authority to trust; the pod\u2019s own if absent.' }),
    ),
  },
  'Replicas from Kubernetes itself: known in milliseconds, drained when their pod is terminating.',
)

export const DiscoverSchema = item(
  { dns: Type.Optional(DnsSchema), kubernetes: Type.Optional(KubernetesSchema) },
  'Who knows the replicas: `dns` or `kubernetes`. Those listed under `replicas` are used besides.',
)
