import Type from 'typebox'
import { MODEL_KINDS } from '../domain/fleet.ts'
import * as defaults from './defaults.ts'
import { BackendSchema } from './schema-backends.ts'
import { count, httpUrl, item, name } from './schema-fields.ts'
import { ReleaseSchema, RolloutSchema } from './schema-rollout.ts'

/** What there is to run on: models (public names) and the pools of replicas that serve them. */

export const ModelSchema = item(
  {
    name: name('Public name: what clients send as `model`.'),
    kind: Type.Enum([...MODEL_KINDS], {
      default: 'chat',
      description:
        'What it does: `chat` generates text; `embedding`, `ranking` and `vision` answer in one go, in batches, at `/v1/embeddings` and `/v2/models/NAME/infer`.',
    }),
    aliases: Type.Array(name('One alias.'), { default: [], description: 'Other names for the same model.' }),
    contextTokensMax: count(defaults.CONTEXT_TOKENS_MAX, {
      description: 'Prompt and answer together may not be longer than this, in tokens.',
    }),
    outputTokensDefault: count(defaults.OUTPUT_TOKENS_DEFAULT, {
      description: 'The longest answer for a client that sends no `max_tokens`.',
    }),
    fallback: Type.Optional(name('The smaller model that answers in its place when the ladder says so.')),
    createdAtS: Type.Integer({
      default: defaults.MODEL_CREATED_AT_S,
      minimum: 0,
      maximum: 100_000_000_000,
      description: 'Date that `/v1/models` shows, in Unix seconds.',
    }),
    releases: Type.Optional(
      Type.Array(ReleaseSchema, {
        minItems: 1,
        maxItems: 100,
        description: 'Its versions. Without any there is one, version 1.',
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
            'As much as keeps the time between tokens that tenants are promised, where the engine\u2019s speed is known (`simulated`); else `gradient`.',
        }),
        concurrencyMax: concurrencyMax('Never more answers at once than this.'),
      },
      'Whatever the engine tells enough for.',
    ),
    item(
      {
        kind: Type.Literal('fixed', { description: 'Always the same number.' }),
        concurrencyMax: count(defaults.POOL_CONCURRENCY_MAX, {
          description: 'Answers that one replica generates at once.',
        }),
      },
      'A fixed limit.',
    ),
    item(
      {
        kind: Type.Literal('gradient', { description: 'Learned: less when first tokens take longer than usual.' }),
        concurrencyMax: concurrencyMax('Never more answers at once than this.'),
      },
      'A limit that learns from latency.',
    ),
    item(
      {
        kind: Type.Literal('aimd', { description: 'Learned: less when the engine refuses or fails.' }),
        concurrencyMax: concurrencyMax('Never more answers at once than this.'),
      },
      'A limit that learns from failures.',
    ),
  ],
  {
    default: { kind: 'auto', concurrencyMax: defaults.ENGINE_CONCURRENCY_MAX },
    description: 'How much may be in flight at one replica.',
  },
)

export const PoolSchema = item(
  {
    id: Type.Optional(name('Name in metrics and logs; `MODEL-REGION`, or `MODEL-RELEASE-REGION`, if absent.')),
    model: name('The model that this pool serves.'),
    release: Type.Optional(name('The version of the model that it serves; the first one if absent.')),
    region: Type.String({ ...name('Where it runs.'), default: defaults.REGION }),
    backend: BackendSchema,
    replicas: Type.Union(
      [
        Type.Integer({ minimum: 1, maximum: 1_000 }),
        Type.Array(httpUrl('Address of one replica.'), { minItems: 1, maxItems: 1_000 }),
      ],
      { default: 1, description: 'How many simulated engines, or the addresses of the engines.' },
    ),
    limit: LimitSchema,
    roundTripMs: Type.Number({
      default: 0,
      minimum: 0,
      maximum: 60_000,
      description: 'To the pool and back, where its region is not the local one.',
    }),
    dedicatedTo: Type.Optional(
      Type.Array(name('A tenant\u2019s id.'), {
        minItems: 1,
        maxItems: 10_000,
        description: 'Kept for these tenants, who then use no other pool of the model; for everybody if absent.',
      }),
    ),
  },
  'Replicas of one release in one region.',
)
