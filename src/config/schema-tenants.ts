import Type from 'typebox'
import { BANDS } from '../domain/tenant.ts'
import * as defaults from './defaults.ts'
import { durationMs, item, name, section, weight } from './schema-fields.ts'

/** Who may ask, and what they were promised. */

export const SloSchema = item(
  {
    name: name('How tenants refer to it.'),
    ttftMs: durationMs(2_000, { minimum: 1, description: 'First token within this many milliseconds.' }),
    interTokenMs: durationMs(100, {
      minimum: 1,
      description: 'Each next token within this many milliseconds, on average.',
    }),
    totalMs: durationMs(60_000, { minimum: 1, description: 'The whole answer within this many milliseconds.' }),
    cutOff: Type.Boolean({
      default: false,
      description:
        'End answers that are still running after `totalMs`. Otherwise a late answer goes on, unless its client set a deadline of its own.',
    }),
  },
  'A latency promise.',
)

const RateSchema = item(
  {
    perMinute: Type.Number({ exclusiveMinimum: 0, maximum: 1e12, description: 'Refill rate.' }),
    burst: Type.Optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 1e12, description: 'Bucket size; `perMinute` if absent.' }),
    ),
  },
  'A rate with a burst.',
)

const AllowanceSchema = Type.Object(
  {
    requests: Type.Optional(RateSchema),
    tokens: Type.Optional(RateSchema),
    concurrencyMax: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'Requests in the house at once.' }),
    ),
  },
  { additionalProperties: false, default: {}, description: 'What it may use; an absent limit is no limit.' },
)

/** Lower-case hexadecimal, as `spillway keys create` prints it. */
export const KEY_HASH_PATTERN = '^sha256:[0-9a-f]{64}$'

const KeySchema = item(
  {
    id: name('Name in metrics, logs and usage records; never the secret.'),
    hash: Type.String({
      pattern: KEY_HASH_PATTERN,
      description: 'SHA-256 of the secret, as `spillway keys create` prints it.',
    }),
    weight: weight('Share of the tenant\u2019s turns among its keys.'),
    allowance: AllowanceSchema,
  },
  'A credential that names the tenant.',
)

export const AdminSchema = section(
  {
    keys: Type.Array(
      item(
        {
          id: name('Who it is, in the journal and in the history of changes.'),
          hash: Type.String({
            pattern: KEY_HASH_PATTERN,
            description: 'SHA-256 of the secret, as `spillway keys create` prints it.',
          }),
        },
        'A credential for the admin API.',
      ),
      { default: [], description: 'Who may change models, pools and rollouts while they run; nobody if empty.' },
    ),
  },
  'The admin API, `/admin/v1`.',
)

const AnswerCacheSchema = item(
  {
    similarityMin: Type.Number({
      default: defaults.ANSWER_SIMILARITY_MIN,
      minimum: 0,
      maximum: 1,
      description: 'How alike two questions must be (cosine) to get one answer; calibrated for the built-in embedder.',
    }),
    temperatureMax: Type.Number({
      default: defaults.ANSWER_TEMPERATURE_MAX,
      minimum: 0,
      maximum: 2,
      description: 'Requests with a higher temperature are always answered anew; one that names none has 1.',
    }),
    ttlS: Type.Integer({
      default: defaults.ANSWER_TTL_S,
      minimum: 1,
      maximum: 31_536_000,
      description: 'Answers are kept this many seconds.',
    }),
    checkRatio: Type.Number({
      default: defaults.ANSWER_CHECK_RATIO,
      minimum: 0,
      maximum: 1,
      description: 'Share of known answers that are made anew all the same and compared, to measure false hits.',
    }),
  },
  'Keeps whole answers and gives them again to whoever asks nearly the same; off if absent.',
)

export const TenantSchema = item(
  {
    id: name('Name in metrics, logs and usage records.'),
    org: Type.Optional(name('The organisation that its share is part of; the tenant itself if absent.')),
    weight: weight('Share of the platform relative to other tenants of its organisation.'),
    slo: Type.String({ ...name('Name of its latency promise.'), default: 'steady' }),
    bands: Type.Array(Type.Enum([...BANDS]), {
      default: ['interactive', 'standard', 'offline'],
      minItems: 1,
      uniqueItems: true,
      description: 'Priority classes that it may use.',
    }),
    contract: Type.Enum(['degrade', 'reject'], {
      default: 'degrade',
      description: 'Under overload: be served less (`degrade`), or be refused (`reject`).',
    }),
    bidMax: Type.Number({
      default: 0,
      minimum: 0,
      maximum: 1_000_000,
      description: 'Bids are clamped to this. A bid orders the tenant\u2019s own requests, never those of others.',
    }),
    waitMsMax: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400_000,
        description: 'How long one of its requests may wait for a turn; `queue.waitMsMax` if absent.',
      }),
    ),
    allowance: AllowanceSchema,
    answerCache: Type.Optional(AnswerCacheSchema),
    keys: Type.Array(KeySchema, { default: [], description: 'Its credentials.' }),
  },
  'A party isolated from all others.',
)
