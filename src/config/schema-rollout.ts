import { Type } from '../base/schema.ts'
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
    version: name('Version of the release, which is `MODEL@VERSION` in metrics, journal and headers.'),
    artifact: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1_024, description: 'Origin of the weights; shown to people, not used.' }),
    ),
    labels: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        maxItems: 32,
        description: 'Labels of the release where it comes from, as `champion`; shown to people, not used.',
      }),
    ),
    contextTokensMax: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: 'Longest prompt and answer together, in tokens; the model\u2019s if absent.',
      }),
    ),
    fallback: Type.Optional(
      name('Smaller model that answers in this release\u2019s place; the model\u2019s `fallback` if absent.'),
    ),
    price: Type.Optional(
      item(
        {
          inputPerMillion: money('Price of a million prompt tokens.'),
          outputPerMillion: money('Price of a million output tokens.'),
        },
        'Price of the release\u2019s tokens, in your currency.',
      ),
    ),
    createdAtS: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 100_000_000_000, description: 'Creation date, in Unix seconds.' }),
    ),
  },
  'A version of the model.',
)

const RuleSchema = item(
  {
    release: name('Version that matching requests get.'),
    tenant: Type.Optional(name('Tenant whose requests match; any if absent.')),
    key: Type.Optional(name('Id of the key whose requests match; any if absent.')),
    header: Type.Optional(
      item(
        {
          name: Type.String({ pattern: '^[a-z0-9-]+$', description: 'Name of the header, in lower case.' }),
          value: Type.Optional(Type.String({ maxLength: 256, description: 'Value of the header; any if absent.' })),
        },
        'Header that matching requests carry.',
      ),
    ),
  },
  'A feature flag: requests that match all of its conditions get this version.',
)

export const HoldoutItemSchema = item(
  {
    id: name('Name of the item in the journal.'),
    prompt: Type.String({ minLength: 1, maxLength: 100_000, description: 'Question of the item.' }),
    expected: Type.Optional(Type.String({ minLength: 1, description: 'Text that a right answer contains.' })),
    pattern: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'Regular expression that a right answer matches, instead of `expected`.',
      }),
    ),
  },
  'A question with a known answer.',
)

export const RolloutSchema = item(
  {
    stable: name('Version of all requests that do not get the canary.'),
    canary: Type.Optional(name('Version that is tried out.')),
    steps: Type.Array(Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 100 }), {
      default: ROLLOUT_DEFAULTS.steps.map((ratio) => ratio * 100),
      minItems: 1,
      maxItems: 8,
      description: 'Percentages of the requests that the canary gets, step by step; after the last step it gets all.',
    }),
    dwellMs: durationMs(ROLLOUT_DEFAULTS.dwellUs / 1_000, {
      description: 'Shortest time of a step, in milliseconds, however clear the judge\u2019s evidence is.',
    }),
    stickyBy: Type.Enum(['session', 'tenant'], {
      default: 'session',
      description: 'Requests that always get the same version: those of one session, or of one tenant.',
    }),
    judge: section(
      {
        alpha: Type.Number({
          default: JUDGE_DEFAULTS.alpha,
          exclusiveMinimum: 0,
          exclusiveMaximum: 1,
          description: 'Probability of rolling back a release that is no worse, over the whole rollout.',
        }),
        pairsMin: count(JUDGE_DEFAULTS.pairsMin, {
          description: 'Attempts of the canary that must be compared in a step before the next step.',
        }),
        rateMargin: Type.Number({
          default: JUDGE_DEFAULTS.rateMargin,
          minimum: 0,
          maximum: 1,
          description: 'Rise in the share of failures or refusals that counts as worse.',
        }),
        timeMargin: Type.Number({
          default: JUDGE_DEFAULTS.timeMargin,
          minimum: 0,
          maximum: 10,
          description: 'Rise in time or cost, as a share, that counts as worse.',
        }),
      },
      'The judge, which rolls a canary back or lets it go on.',
    ),
    shadow: Type.Optional(
      item(
        {
          release: Type.Optional(name('Version that gets the copies; the canary if absent.')),
          percent: Type.Number({
            exclusiveMinimum: 0,
            maximum: 100,
            description: 'Percentage of requests that are copied, as long as capacity is left over.',
          }),
          inFlightMax: count(SHADOW_DEFAULTS.inFlightMax, { description: 'Copies that may be running at once.' }),
          excludedTenants: Type.Array(name('Tenant id.'), {
            default: [],
            description: 'Tenants whose requests are never copied.',
          }),
        },
        'Shadow traffic: copies of requests, whose answers are compared with the clients’ answers and thrown away.',
      ),
    ),
    holdout: Type.Optional(
      item(
        {
          file: Type.Optional(
            Type.String({
              minLength: 1,
              description:
                'File of JSON lines `{id, prompt, expected}` or `{id, prompt, pattern}`; a relative path starts at the configuration file.',
            }),
          ),
          items: Type.Array(HoldoutItemSchema, {
            default: [],
            maxItems: 10_000,
            description: 'Items of the holdout set, instead of `file` or besides.',
          }),
          perMinute: Type.Number({
            default: HOLDOUT_DEFAULTS.perMinute,
            exclusiveMinimum: 0,
            maximum: 6_000,
            description: 'Items that each release is asked per minute, as long as capacity is left over.',
          }),
          inFlightMax: count(HOLDOUT_DEFAULTS.inFlightMax, { description: 'Items that may be running at once.' }),
          outputTokensMax: count(HOLDOUT_DEFAULTS.outputTokensMax, {
            description: 'Longest answer to an item, in tokens.',
          }),
        },
        'The holdout set: questions with known answers, asked continuously. A release that gets worse at them is rolled back.',
      ),
    ),
    rules: Type.Array(RuleSchema, {
      default: [],
      maxItems: 1_000,
      description: 'Feature flags, which decide before the split; the first that matches wins.',
    }),
  },
  'The rollout: how requests are split over two releases.',
)
