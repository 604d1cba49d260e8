import Type from 'typebox'
import { HOLDOUT_DEFAULTS } from '../policy/rollout/holdout.ts'
import { JUDGE_DEFAULTS } from '../policy/rollout/judge.ts'
import { ROLLOUT_DEFAULTS } from '../policy/rollout/rollout.ts'
import { SHADOW_DEFAULTS } from '../policy/rollout/shadow.ts'
import { count, durationMs, item, name, section } from './schema-fields.ts'

/** Versions of a model, and how its requests are split over two of them while a new one is tried. */

export const VERSION_DEFAULT = '1'

const money = (description: string) => Type.Number({ minimum: 0, maximum: 1_000_000, description })

export const ReleaseSchema = item(
  {
    version: name('What it is called: `MODEL@VERSION` in metrics, journal and headers.'),
    artifact: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1_024, description: 'Where its weights come from; for people.' }),
    ),
    labels: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        maxItems: 32,
        description: 'What else it is called where it comes from, as `champion`; for people.',
      }),
    ),
    contextTokensMax: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000_000_000, description: 'Where it differs from the model\u2019s.' }),
    ),
    fallback: Type.Optional(name('The smaller model in its place, where it differs from the model\u2019s.')),
    price: Type.Optional(
      item(
        {
          inputPerMillion: money('Of a million prompt tokens.'),
          outputPerMillion: money('Of a million output tokens.'),
        },
        'What its tokens cost, in your currency.',
      ),
    ),
    createdAtS: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 100_000_000_000, description: 'Its date, in Unix seconds.' }),
    ),
  },
  'One version of the model.',
)

const RuleSchema = item(
  {
    release: name('The version that they get.'),
    tenant: Type.Optional(name('Requests of this tenant.')),
    key: Type.Optional(name('Requests with this key, by its id.')),
    header: Type.Optional(
      item(
        {
          name: Type.String({ pattern: '^[a-z0-9-]+$', description: 'Lower case.' }),
          value: Type.Optional(Type.String({ maxLength: 256, description: 'Any value if absent.' })),
        },
        'Requests with this header.',
      ),
    ),
  },
  'A feature flag: whoever fits all that it names gets this version.',
)

export const HoldoutItemSchema = item(
  {
    id: name('Its name in the journal.'),
    prompt: Type.String({ minLength: 1, maxLength: 100_000, description: 'The question.' }),
    expected: Type.Optional(Type.String({ minLength: 1, description: 'A right answer contains this.' })),
    pattern: Type.Optional(Type.String({ minLength: 1, description: 'Or matches this regular expression.' })),
  },
  'A question with a known answer.',
)

export const RolloutSchema = item(
  {
    stable: name('The version that everybody gets who does not get the canary.'),
    canary: Type.Optional(name('The version that is tried.')),
    steps: Type.Array(Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 100 }), {
      default: ROLLOUT_DEFAULTS.steps.map((ratio) => ratio * 100),
      minItems: 1,
      maxItems: 8,
      description: 'Percent of the requests that the canary gets, step by step; after the last one it gets all.',
    }),
    dwellMs: durationMs(ROLLOUT_DEFAULTS.dwellUs / 1_000, {
      description: 'A step takes at least this long, however clear the case is.',
    }),
    stickyBy: Type.Enum(['session', 'tenant'], {
      default: 'session',
      description: 'Who stays together: the requests of one session, or of one tenant.',
    }),
    judge: section(
      {
        alpha: Type.Number({
          default: JUDGE_DEFAULTS.alpha,
          exclusiveMinimum: 0,
          exclusiveMaximum: 1,
          description: 'Chance to roll back a release that is no worse, over the whole rollout.',
        }),
        pairsMin: count(JUDGE_DEFAULTS.pairsMin, {
          description: 'Attempts of the canary that must have been compared in a step before the next one.',
        }),
        rateMargin: Type.Number({
          default: JUDGE_DEFAULTS.rateMargin,
          minimum: 0,
          maximum: 1,
          description: 'More failures or refusals than this share are worse.',
        }),
        timeMargin: Type.Number({
          default: JUDGE_DEFAULTS.timeMargin,
          minimum: 0,
          maximum: 10,
          description: 'Slower, or costlier, than by this share is worse.',
        }),
      },
      'When a canary is rolled back, and when it goes on.',
    ),
    shadow: Type.Optional(
      item(
        {
          release: Type.Optional(name('The version that sees the copies; the canary if absent.')),
          percent: Type.Number({
            exclusiveMinimum: 0,
            maximum: 100,
            description: 'Share of the requests that are copied, while there is room left over.',
          }),
          inFlightMax: count(SHADOW_DEFAULTS.inFlightMax, { description: 'Copies under way at once.' }),
          excludedTenants: Type.Array(name('A tenant’s id.'), {
            default: [],
            description: 'Tenants whose requests are never copied.',
          }),
        },
        'Copies of requests, whose answers are compared with the clients’ and thrown away.',
      ),
    ),
    holdout: Type.Optional(
      item(
        {
          file: Type.Optional(
            Type.String({
              minLength: 1,
              description:
                'JSON lines of `{id, prompt, expected}` or `{id, prompt, pattern}`, beside the configuration.',
            }),
          ),
          items: Type.Array(HoldoutItemSchema, {
            default: [],
            maxItems: 10_000,
            description: 'Or the items themselves.',
          }),
          perMinute: Type.Number({
            default: HOLDOUT_DEFAULTS.perMinute,
            exclusiveMinimum: 0,
            maximum: 6_000,
            description: 'Items that are asked in a minute, of each release, on room that is left over.',
          }),
          inFlightMax: count(HOLDOUT_DEFAULTS.inFlightMax, { description: 'Items under way at once.' }),
          outputTokensMax: count(HOLDOUT_DEFAULTS.outputTokensMax, { description: 'The longest answer to an item.' }),
        },
        'Questions with known answers, asked without end: a release that gets worse at them is rolled back.',
      ),
    ),
    rules: Type.Array(RuleSchema, {
      default: [],
      maxItems: 1_000,
      description: 'Feature flags: pins that decide before the split, the first that fits.',
    }),
  },
  'How requests are split over releases.',
)
