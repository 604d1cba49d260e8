import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { durationMs, httpUrl, item, name, section } from './schema-fields.ts'

/** Who pays what: price lists, and where what was used is written down. */

const usd = (description: string) => Type.Number({ default: 0, minimum: 0, maximum: 1_000_000, description })

const ModelPriceSchema = item(
  {
    model: name('Public name of the model.'),
    inputUsd: usd('Dollars per million prompt tokens that no cache had.'),
    cachedUsd: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1_000_000,
        description: 'Dollars per million prompt tokens that an engine’s cache had; `inputUsd` if absent.',
      }),
    ),
    outputUsd: usd('Dollars per million tokens of answers.'),
    requestUsd: usd('Dollars per request, whatever its size.'),
  },
  'The price of a model. Parts of a nano-dollar per million tokens are rounded.',
)

export const PricesSchema = Type.Array(
  item(
    {
      version: name('Name of the list, which stands on every line of the ledger that was priced by it.'),
      from: Type.Optional(
        Type.String({
          pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2})?Z)?$',
          description: 'When the list begins, in UTC, as `2026-03-01` or `2026-03-01T12:00Z`; it always was if absent.',
        }),
      ),
      org: Type.Optional(name('Organisation that the list is for; everybody if absent.')),
      models: Type.Array(ModelPriceSchema, { minItems: 1, description: 'Models and their prices.' }),
    },
    'A price list.',
  ),
  {
    default: [],
    description:
      'Price lists. Of those that have begun, an organisation’s own go before those for everybody, and later ones before earlier ones. A request keeps the price that it arrived at. A model in no list costs nothing.',
  },
)

export const AlertsSchema = section(
  {
    webhookUrl: Type.Optional(
      httpUrl(
        'Address that is sent a POST with JSON for every mark that a budget passes; none if absent. A receiver that is away delays nothing.',
      ),
    ),
    webhookTimeoutMs: durationMs(5_000, {
      minimum: 1,
      description: 'Longest time for one try, in milliseconds. There are three.',
    }),
  },
  'Alerts: who is told when a budget comes to a mark.',
)

export const LedgerSchema = section(
  {
    enabled: Type.Boolean({
      default: true,
      description: 'Whether it is written down who used what. Needs `store` on a disk or a server.',
    }),
    spoolPath: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'Folder for what was used and is not yet in the database; it should last over a restart. Each process has a folder of its own in it. `store.path` with `.spool` behind it if absent.',
      }),
    ),
    spoolBytesMax: Type.Integer({
      default: defaults.SPOOL_BYTES_MAX,
      minimum: 1_048_576,
      maximum: 1_000_000_000_000,
      description:
        'Bytes of that folder at most. Beyond it what is used is no longer written down, and counted as lost.',
    }),
    lineDays: Type.Integer({
      default: defaults.LEDGER_LINE_DAYS,
      minimum: 1,
      maximum: 36_500,
      description: 'Days for which single lines are kept. Sums per hour stay.',
    }),
    onUnknown: Type.Enum(['refuse', 'allow'], {
      default: 'refuse',
      description:
        'What happens to requests with a hard budget while the database has not said yet what was used of it: they are refused with 503, or the budget counts from nothing until the database is heard.',
    }),
    crashesPaidBy: Type.Enum(['platform', 'tenant'], {
      default: 'platform',
      description:
        'Who pays for the prompt of an answer that was running when Spillway crashed. Its tokens are not known any more.',
    }),
  },
  'The ledger: who used what, and what it is sold at.',
)
