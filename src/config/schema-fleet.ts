import { Type } from '../base/schema.ts'
import { MODEL_KINDS } from '../domain/fleet.ts'
import { TRANSIT_ROUTES } from '../domain/transit.ts'
import * as defaults from './defaults.ts'
import { AutoscaleSchema } from './schema-autoscale.ts'
import { BackendSchema } from './schema-backends.ts'
import { count, httpUrl, item, name } from './schema-fields.ts'
import { ReleaseSchema, RolloutSchema } from './schema-rollout.ts'

/** What there is to run on: models (public names) and the pools of replicas that serve them. */

export const ModelSchema = item(
  {
    name: name('Public name of the model, which clients send as `model`.'),
    kind: Type.Enum([...MODEL_KINDS], {
      default: 'chat',
      description:
        'Kind of the model. `chat` generates text; `embedding`, `ranking` and `vision` answer whole, in batches, at `/v1/embeddings` and `/v2/models/NAME/infer`; `audio` and `image` are passed through at `/v1/audio` and `/v1/images`.',
    }),
    transit: Type.Optional(
      Type.Array(Type.Enum([...TRANSIT_ROUTES]), {
        maxItems: TRANSIT_ROUTES.length,
        description:
          'Endpoints that the engines serve and whose bodies are passed through: `audio` (`/v1/audio`), `images` (`/v1/images`), `rerank` (`/v1/rerank`, `/v1/score`), `tokenize` (`/tokenize`, `/detokenize`). If absent: `audio` for an audio model, `images` for an image model, `rerank` for a ranking model.',
      }),
    ),
    aliases: Type.Array(name('Alias.'), { default: [], description: 'Other names for the same model.' }),
    contextTokensMax: count(defaults.CONTEXT_TOKENS_MAX, {
      description: 'Longest prompt and answer together, in tokens.',
    }),
    outputTokensDefault: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description:
          'Longest answer, in tokens, where the client sends no `max_tokens`. If absent, engines are told no bound and answer until they stop or their context is full.',
      }),
    ),
    fallback: Type.Optional(
      name('Smaller model that answers in this one\u2019s place when the degradation ladder steps down.'),
    ),
    createdAtS: Type.Integer({
      default: defaults.MODEL_CREATED_AT_S,
      minimum: 0,
      maximum: 100_000_000_000,
      description: 'Creation date that `/v1/models` shows, in Unix seconds.',
    }),
    releases: Type.Optional(
      Type.Array(ReleaseSchema, {
        minItems: 1,
        maxItems: 100,
        description: 'Releases of the model; if absent, one of version 1.',
      }),
    ),
    rollout: Type.Optional(RolloutSchema),
  },
  'A model that clients can ask for.',
)

const concurrencyMax = (description: string) => count(defaults.ENGINE_CONCURRENCY_MAX, { description })

export const LimitSchema = Type.Union(
  [
    item(
      {
        kind: Type.Literal('auto', {
          description:
            'Limit from the engine\u2019s speed, which is known of simulated engines and learned of chat models behind a URL: as many answers as keep the promised time between tokens. Simulated models that answer in one go: two batches. All others: as `gradient`.',
        }),
        concurrencyMax: concurrencyMax('Upper bound on the answers that one replica generates at once.'),
      },
      'A limit chosen by what is known of the engine.',
    ),
    item(
      {
        kind: Type.Literal('fixed', { description: 'Fixed limit.' }),
        concurrencyMax: count(defaults.POOL_CONCURRENCY_MAX, {
          description: 'Answers that one replica generates at once.',
        }),
      },
      'A fixed limit.',
    ),
    item(
      {
        kind: Type.Literal('gradient', {
          description: 'Limit learned from latency: lower when first tokens take longer than usual.',
        }),
        concurrencyMax: concurrencyMax('Upper bound on the answers that one replica generates at once.'),
      },
      'A limit that learns from latency.',
    ),
    item(
      {
        kind: Type.Literal('aimd', {
          description: 'Limit learned from failures: lower when the engine refuses or fails.',
        }),
        concurrencyMax: concurrencyMax('Upper bound on the answers that one replica generates at once.'),
      },
      'A limit that learns from failures.',
    ),
  ],
  {
    default: { kind: 'auto', concurrencyMax: defaults.ENGINE_CONCURRENCY_MAX },
    description: 'Limit on the requests in flight at one replica.',
  },
)

export const PoolSchema = item(
  {
    id: Type.Optional(name('Pool name in metrics and logs; `MODEL-REGION`, or `MODEL-RELEASE-REGION`, if absent.')),
    model: name('Model that the pool serves.'),
    release: Type.Optional(
      name('Version of the model that the pool serves; the model\u2019s first release if absent.'),
    ),
    region: Type.String({ ...name('Region that the pool runs in.'), default: defaults.REGION }),
    backend: BackendSchema,
    replicas: Type.Union(
      [
        Type.Integer({ minimum: 1, maximum: 1_000 }),
        Type.Array(httpUrl('Address of one replica.'), { minItems: 1, maxItems: 1_000 }),
      ],
      { default: 1, description: 'Replicas: the number of simulated engines, or the addresses of real ones.' },
    ),
    limit: LimitSchema,
    engineName: Type.Optional(
      name(
        'Name of the engines behind the pool, where it matters which pools have them in common. Pools with the same address have one engine in common, with one room; those with different names count it each for itself. Simulated pools with the same name have their engines in common, the first with the first.',
      ),
    ),
    roundTripMs: Type.Number({
      default: 0,
      minimum: 0,
      maximum: 60_000,
      description: 'Round trip to the pool and back, in milliseconds, where its region is not `regions.local`.',
    }),
    usdPerHour: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 100_000,
        description:
          'Price of one replica, in dollars an hour, for the gauges of cost; that of the GPU profile if absent and `simulated`, else no cost is told.',
      }),
    ),
    inside: Type.Optional(
      Type.Boolean({
        description:
          'The engines of this pool are trusted with prompts that no screen has judged yet: tenants with `join: overlap` have their prompts read here while they are judged.',
      }),
    ),
    dedicatedTo: Type.Optional(
      Type.Array(name('Tenant id.'), {
        minItems: 1,
        maxItems: 10_000,
        description:
          'Tenants that alone use this pool, and no other pool of the model; if absent, every tenant uses it.',
      }),
    ),
    spot: Type.Boolean({
      default: false,
      description:
        'Replicas that may be taken away at any time: they get offline work only. Drain them when their end is announced.',
    }),
    autoscale: Type.Optional(AutoscaleSchema),
  },
  'Replicas of one release in one region.',
)
