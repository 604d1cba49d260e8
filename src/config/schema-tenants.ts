import { Type } from '../base/schema.ts'
import { STORING_DEFAULTS, STORING_MAX } from '../domain/archive.ts'
import { NANO_PER_USD } from '../domain/ledger.ts'
import { SPEND_HOURS_MAX, SPEND_MAX } from '../domain/spend-key.ts'
import { BANDS, WEIGHT_MAX, WEIGHT_MIN } from '../domain/tenant.ts'
import { BURST_MAX } from '../policy/budgets/token-bucket.ts'
import * as defaults from './defaults.ts'
import { TenantAuditSchema } from './schema-audit.ts'
import { durationMs, item, name, section, weight } from './schema-fields.ts'
import { TenantScreeningSchema } from './schema-screening.ts'

/** Who may ask, and what they were promised. */

export const SloSchema = item(
  {
    name: name('Name of the promise, which tenants refer to.'),
    ttftMs: durationMs(2_000, { minimum: 1, description: 'Promised time to the first token, in milliseconds.' }),
    interTokenMs: durationMs(100, {
      minimum: 1,
      description: 'Promised mean time between tokens, in milliseconds.',
    }),
    totalMs: durationMs(60_000, { minimum: 1, description: 'Promised time of the whole answer, in milliseconds.' }),
    cutOff: Type.Boolean({
      default: false,
      description:
        'Whether an answer that still runs after `totalMs` is cut off. If false, a late answer goes on, unless its client set a deadline of its own.',
    }),
  },
  'A latency promise.',
)

const rateOf = (unit: 'Requests' | 'Tokens') =>
  item(
    {
      perMinute: Type.Integer({ minimum: 1, maximum: 1e12, description: `${unit} per minute.` }),
      burst: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: BURST_MAX,
          description: `${unit} that may come at once after a pause; \`perMinute\` if absent.`,
        }),
      ),
    },
    `${unit} per minute, with a burst.`,
  )

const BudgetSchema = item(
  {
    period: Type.Optional(
      Type.Enum(['day', 'month'], {
        description: 'Day or month of the calendar in UTC; a month if neither this nor `hours` is given.',
      }),
    ),
    hours: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: SPEND_HOURS_MAX,
        description: 'A rolling budget, for the last hours: those that are whole, and the one that runs.',
      }),
    ),
    usd: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: SPEND_MAX / NANO_PER_USD,
        description: 'Dollars at list price (`prices`).',
      }),
    ),
    tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: SPEND_MAX, description: 'Prompt and output tokens.' })),
    kind: Type.Enum(['hard', 'soft'], {
      default: 'hard',
      description: 'Whether what does not fit is refused (`hard`), or only marks are told (`soft`).',
    }),
    marks: Type.Array(Type.Number({ exclusiveMinimum: 0, maximum: 1, description: 'Share of the budget.' }), {
      default: [0.5, 0.8, 1],
      maxItems: 8,
      uniqueItems: true,
      description: 'Shares of the budget at which the journal and `alerts.webhook` are told, once for each period.',
    }),
    model: Type.Optional(name('Only what this model uses, for each tenant by itself.')),
    perUser: Type.Boolean({
      default: false,
      description: 'Whether each end user of a tenant (`user`, `safety_identifier`) has this budget by himself.',
    }),
  },
  'A budget.',
)

export const AllowanceSchema = Type.Object(
  {
    requests: Type.Optional(rateOf('Requests')),
    tokens: Type.Optional(rateOf('Tokens')),
    concurrencyMax: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Requests that may be waiting and running at once.',
      }),
    ),
    budgets: Type.Optional(
      Type.Array(BudgetSchema, {
        maxItems: 16,
        description: 'Budgets of money and tokens for a period. All of them hold.',
      }),
    ),
  },
  {
    additionalProperties: false,
    default: {},
    description: 'Allowance: what may be used. An absent limit is no limit.',
  },
)

/** Lower-case hexadecimal, as `spillway keys create` prints it. */
export const KEY_HASH_PATTERN = '^sha256:[0-9a-f]{64}$'

const KeySchema = item(
  {
    id: name('Key name in metrics, logs and usage records; never the secret.'),
    hash: Type.String({
      pattern: KEY_HASH_PATTERN,
      description: 'SHA-256 of the secret, as `spillway keys create` prints it.',
    }),
    weight: weight('Weight of the key among the tenant\u2019s keys.'),
    allowance: AllowanceSchema,
  },
  'A key of the tenant.',
)

const keyHash = Type.String({
  pattern: KEY_HASH_PATTERN,
  description: 'SHA-256 of the secret, as `spillway keys create` prints it.',
})

export const AdminSchema = section(
  {
    keys: Type.Array(
      item(
        { id: name('Name of the administrator in the journal and in the history of changes.'), hash: keyHash },
        'A key of the admin API.',
      ),
      {
        default: [],
        description:
          'Keys that may change models, pools and rollouts while Spillway runs, and read `/metrics`; if empty, none may.',
      },
    ),
    metricsKeys: Type.Array(
      item({ id: name('Name of the reader, for you.'), hash: keyHash }, 'A key that may read `/metrics`.'),
      { default: [], description: 'Keys that may read `/metrics` and nothing else: for Prometheus.' },
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
      description:
        'Least cosine similarity of two questions that get the same answer; the default is calibrated for the built-in embedder.',
    }),
    temperatureMax: Type.Number({
      default: defaults.ANSWER_TEMPERATURE_MAX,
      minimum: 0,
      maximum: 2,
      description: 'Highest temperature of requests that use the cache; a request without one has 1.',
    }),
    ttlS: Type.Integer({
      default: defaults.ANSWER_TTL_S,
      minimum: 1,
      maximum: 31_536_000,
      description: 'Time that answers are kept, in seconds.',
    }),
    checkRatio: Type.Number({
      default: defaults.ANSWER_CHECK_RATIO,
      minimum: 0,
      maximum: 1,
      description: 'Share of cache hits that are also answered anew and compared, to measure false hits.',
    }),
  },
  'The answer cache, which gives a kept answer to a question that is nearly the same; off if absent.',
)

const StoringSchema = item(
  {
    ttlS: Type.Integer({
      default: STORING_DEFAULTS.ttlS,
      minimum: 1,
      maximum: STORING_MAX.ttlS,
      description: 'Time that a stored answer is kept, in seconds: thirty days unless given.',
    }),
    countMax: Type.Integer({
      default: STORING_DEFAULTS.countMax,
      minimum: 1,
      maximum: STORING_MAX.countMax,
      description: 'Stored answers of the tenant at most; the oldest make room.',
    }),
    bytesMax: Type.Integer({
      default: STORING_DEFAULTS.bytesMax,
      minimum: 1,
      maximum: STORING_MAX.bytesMax,
      description: 'Bytes of the tenant\u2019s stored answers at most; the oldest make room.',
    }),
    shadows: Type.Boolean({
      default: false,
      description:
        'Whether answers of shadows are kept beside the client\u2019s for operators (`spillway rollout outputs`): screened, cut, in memory, for `ttlS` and a week at most.',
    }),
  },
  'Storing of answers for clients that ask for it with `store: true`; no answer is stored if absent.',
)

export const OrgSchema = item(
  {
    id: name(
      'Name of the organisation, as in `tenants[].org`; a tenant without one is an organisation by its own name.',
    ),
    weight: Type.Optional(
      Type.Number({
        minimum: WEIGHT_MIN,
        maximum: WEIGHT_MAX,
        description:
          'Weight of the organisation among organisations, whatever its tenants weigh; as much as those of them that have something waiting if absent.',
      }),
    ),
    allowance: AllowanceSchema,
  },
  'An organisation: tenants that share one share.',
)

export const TenantSchema = item(
  {
    id: name('Tenant name in metrics, logs and usage records.'),
    org: Type.Optional(name('Organisation whose share the tenant is part of; the tenant itself if absent.')),
    weight: weight('Weight of the tenant among the tenants of its organisation.'),
    slo: Type.String({ ...name('Name of the tenant\u2019s latency promise.'), default: 'steady' }),
    bands: Type.Array(Type.Enum([...BANDS]), {
      default: ['interactive', 'standard', 'offline'],
      minItems: 1,
      uniqueItems: true,
      description: 'Bands (priority classes) that the tenant may use.',
    }),
    contract: Type.Enum(['degrade', 'reject'], {
      default: 'degrade',
      description: 'Contract for overload: answers of lower quality (`degrade`), or refusals (`reject`).',
    }),
    bidMax: Type.Number({
      default: 0,
      minimum: 0,
      maximum: 1_000_000,
      description:
        'Highest bid; higher ones are lowered to it. A bid orders the tenant\u2019s own requests, never those of others.',
    }),
    waitMsMax: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400_000,
        description:
          'Longest wait of the tenant\u2019s requests for a turn, in milliseconds; `queue.waitMsMax` if absent. With 0 they start at once or are refused.',
      }),
    ),
    allowance: AllowanceSchema,
    strict: Type.Boolean({
      default: false,
      description:
        'Whether a gateway that the lease store has forgotten (`sharing.forgetMs`) refuses the tenant. If false, it goes on with its safe share, which the others have been given too.',
    }),
    tellPrice: Type.Boolean({
      default: false,
      description:
        'Whether answers tell what they are sold at by the price list: `usage.spillway.price_usd`, in streams where the client asks for usage.',
    }),
    prefixCache: Type.Enum(['tenant', 'org', 'shared'], {
      default: 'tenant',
      description:
        'Whose prompts may find each other in engines\u2019 prefix caches: only the tenant\u2019s own (`tenant`), those of its organisation\u2019s tenants that say `org` too, or those of all tenants that say `shared`. A hit is faster, so whoever shares a cache can find out what others sent.',
    }),
    answerCache: Type.Optional(AnswerCacheSchema),
    storing: Type.Optional(StoringSchema),
    screening: Type.Optional(TenantScreeningSchema),
    audit: Type.Optional(TenantAuditSchema),
    keys: Type.Array(KeySchema, { default: [], description: 'Keys of the tenant.' }),
  },
  'A tenant: isolated from all others.',
)
