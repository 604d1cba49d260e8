import Type from 'typebox'
import { POOL_CHOICE_DEFAULTS } from '../policy/routing/choose-pool.ts'
import * as defaults from './defaults.ts'
import { count, durationMs, httpUrl, item, name, section } from './schema-fields.ts'

/** Other regions' gateways: where they are, how we call them, and how they call us. */

const PeerSchema = item(
  {
    region: name('Its region.'),
    url: httpUrl('Address of its gateway up to and including the version, as `https://us.example.com/v1`.'),
    apiKeyEnv: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
        description: 'Name of the environment variable that holds the key with which we call it.',
      }),
    ),
    apiKey: Type.Optional(Type.String({ minLength: 1, description: 'That key itself; prefer `apiKeyEnv`.' })),
    hash: Type.Optional(
      Type.String({
        pattern: '^sha256:[0-9a-f]{64}$',
        description:
          'Hash of the key with which it calls us (`spillway keys create`). Whoever has that key may act for any tenant; without it the peer may not call us.',
      }),
    ),
    roundTripMs: Type.Optional(
      Type.Number({ minimum: 0, maximum: 60_000, description: 'There and back; measured by probes if absent.' }),
    ),
    concurrencyMax: count(defaults.PEER_CONCURRENCY_MAX, { description: 'Requests of ours at once over there.' }),
  },
  'The gateway of another region.',
)

export const RegionsSchema = section(
  {
    local: Type.Optional(
      name('This gateway\u2019s own region; pools of other regions then come second. If absent, all pools are local.'),
    ),
    peers: Type.Array(PeerSchema, { default: [], maxItems: 100, description: 'The gateways of other regions.' }),
    spillMarginMs: durationMs(POOL_CHOICE_DEFAULTS.spillMarginUs / 1_000, {
      description: 'How much sooner another region must be, round trip included, before a request goes there.',
    }),
    returnMs: durationMs(POOL_CHOICE_DEFAULTS.returnUs / 1_000, {
      minimum: 1,
      description: 'A pool that was lost and is back takes its own traffic again little by little over this time.',
    }),
  },
  'Several regions.',
)
