import { Type } from '../base/schema.ts'
import { AUTOSCALE_WRITERS } from '../domain/autoscale.ts'
import * as defaults from './defaults.ts'
import { durationMs, httpUrl, item } from './schema-fields.ts'

/** How many replicas a pool should have, who writes the number, and by what. */

const REPLICAS_MAX = 1_000

const timeoutMs = durationMs(defaults.ACTUATOR_TIMEOUT_MS, {
  minimum: 100,
  description: 'Longest time that one call may take, in milliseconds; it is then tried again.',
})

const dnsLabel = (description: string) =>
  Type.String({ pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$', maxLength: 253, description })

const ActuatorSchema = Type.Union(
  [
    item(
      {
        kind: Type.Literal('kubernetes', {
          description:
            'Writes the scale subresource, with its resourceVersion. Needs `get` and `update` on `deployments/scale` (or what `resource` names).',
        }),
        resource: Type.String({
          pattern: '^[a-z0-9.-]+(/[a-z0-9]+)?/[a-z0-9]+$',
          default: 'apps/v1/deployments',
          description: 'Group, version and plural of what is scaled, as `apps/v1/statefulsets`.',
        }),
        name: dnsLabel('Name of what is scaled.'),
        namespace: Type.String({
          pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
          maxLength: 63,
          default: 'default',
          description: 'Its namespace.',
        }),
        apiUrl: Type.Optional(
          httpUrl('Address of the Kubernetes API server; `https://kubernetes.default.svc` if absent.'),
        ),
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
        timeoutMs,
      },
      'The scale subresource of the Kubernetes API.',
    ),
    item(
      {
        kind: Type.Literal('command', {
          description:
            'Runs a program, which must bring the pool to the number and end with 0. It is run without a shell.',
        }),
        command: Type.Array(Type.String({ minLength: 1, maxLength: 4_096 }), {
          minItems: 1,
          maxItems: 64,
          description:
            'Program and arguments. It finds `SPILLWAY_POOL`, `SPILLWAY_REPLICAS_FROM`, `SPILLWAY_REPLICAS_TO`, `SPILLWAY_LEAVING` (drained replicas, one a line) and `SPILLWAY_FENCE` in its environment.',
        }),
        timeoutMs,
      },
      'A command.',
    ),
    item(
      {
        kind: Type.Literal('webhook', {
          description: 'Posts the order as JSON; any answer of 2xx means that it is done.',
        }),
        url: httpUrl('Address that orders are posted to.'),
        tokenFile: Type.Optional(
          Type.String({ minLength: 1, description: 'File with the bearer token, read anew for every call.' }),
        ),
        timeoutMs,
      },
      'A webhook.',
    ),
  ],
  { description: 'Who carries out orders, where `writer` is `spillway`.' },
)

export const AutoscaleSchema = item(
  {
    writer: Type.Enum([...AUTOSCALE_WRITERS], {
      default: 'none',
      description:
        'Who writes the number of replicas, one writer for ever: `none`, `external` (KEDA or an HPA, by our signals) or `spillway` (the gateway that leads, by `actuator`).',
    }),
    rule: Type.Enum(['predict', 'hpa-queue', 'hpa-util'], {
      default: 'predict',
      description:
        'How the number is found: from demand predicted one cold start ahead, or, for comparison, as Kubernetes\u2019 autoscaler finds it from requests or from utilisation.',
    }),
    minWarm: Type.Integer({
      default: 1,
      minimum: 0,
      maximum: REPLICAS_MAX,
      description: 'Replicas that are always there; 0 lets an idle pool go to zero.',
    }),
    max: Type.Integer({ default: 8, minimum: 1, maximum: REPLICAS_MAX, description: 'Most replicas.' }),
    idleToZeroMs: durationMs(defaults.IDLE_TO_ZERO_MS, {
      minimum: 1_000,
      description: 'Time without a request after which a pool with `minWarm` 0 goes to zero, in milliseconds.',
    }),
    utilisation: Type.Number({
      default: defaults.AUTOSCALE_UTILISATION,
      minimum: 0.1,
      maximum: 1.5,
      description:
        'Share of its replicas\u2019 work that a pool is planned to do at the predicted demand with its margin: higher is cheaper and later.',
    }),
    drainTargetMs: durationMs(defaults.DRAIN_TARGET_MS, {
      minimum: 100,
      description: 'Time in which what waits should be worked off on top of what comes, in milliseconds.',
    }),
    queueTarget: Type.Number({
      default: 20,
      minimum: 0.1,
      maximum: 10_000,
      description: 'Requests that wait or run for each replica, of the rule `hpa-queue`.',
    }),
    coldStartMs: durationMs(defaults.COLD_START_MS, {
      minimum: 100,
      description: 'Time from an order to a ready replica, in milliseconds, until it has been learned.',
    }),
    dryRun: Type.Boolean({ default: false, description: 'Orders are journalled and not carried out.' }),
    actuator: Type.Optional(ActuatorSchema),
    dcgmUrl: Type.Optional(
      httpUrl('Address of a DCGM exporter\u2019s metrics, whose GPU utilisation is told among the signals.'),
    ),
  },
  'How many replicas the pool should have. Signals are told for every pool; this says who acts on them.',
)
