import { Type } from '../base/schema.ts'
import { POOL_CHOICE_DEFAULTS } from '../policy/routing/choose-pool.ts'
import * as defaults from './defaults.ts'
import { count, durationMs, httpUrl, item, name, section } from './schema-fields.ts'

/** Other regions' gateways: where they are, how we call them, and how they call us. */

/** A region's gateways: each is asked once a second by every gateway of every other region. */
const PEER_URLS_MAX = 16

const PeerSchema = item(
  {
    region: name('Region of the peer.'),
    url: Type.Optional(
      httpUrl('Address of the peer\u2019s gateway up to and including the version, as `https://us.example.com/v1`.'),
    ),
    urls: Type.Optional(
      Type.Array(httpUrl('Address of one gateway of the region, as in `url`.'), {
        minItems: 1,
        maxItems: PEER_URLS_MAX,
        description:
          'Addresses of all gateways of a region that has several, instead of `url`. Each is probed for itself, and requests go to those that answer.',
      }),
    ),
    apiKeyEnv: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
        description: 'Name of the environment variable that holds the key for calling the peer.',
      }),
    ),
    apiKey: Type.Optional(Type.String({ minLength: 1, description: 'Key for calling the peer; prefer `apiKeyEnv`.' })),
    hash: Type.Optional(
      Type.String({
        pattern: '^sha256:[0-9a-f]{64}$',
        description:
          'Hash of the key with which the peer calls this gateway (`spillway keys create`). That key may act for any tenant; if absent, the peer cannot call this gateway.',
      }),
    ),
    roundTripMs: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 60_000,
        description: 'Round trip to the peer and back, in milliseconds; measured by probes if absent.',
      }),
    ),
    concurrencyMax: count(defaults.PEER_CONCURRENCY_MAX, {
      description: 'Requests that this gateway may have running at each address of the peer at once.',
    }),
  },
  'Another region, and its gateway or gateways.',
)

export const RegionsSchema = section(
  {
    local: Type.Optional(
      name(
        'Region of this gateway; pools of other regions are used only when they answer sooner. If absent, all pools are local.',
      ),
    ),
    peers: Type.Array(PeerSchema, { default: [], maxItems: 100, description: 'Gateways of other regions.' }),
    spillMarginMs: durationMs(POOL_CHOICE_DEFAULTS.spillMarginUs / 1_000, {
      description:
        'Lead that another region must have, round trip included, before a request goes there, in milliseconds.',
    }),
    returnMs: durationMs(POOL_CHOICE_DEFAULTS.returnUs / 1_000, {
      minimum: 1,
      description:
        'Time over which a pool that was lost and is back takes its traffic again, little by little, in milliseconds.',
    }),
  },
  'Regions, and the gateways of the others.',
)

/** The addresses of a region's gateways, however many there are. */
export const peerUrls = ({
  url,
  urls,
}: {
  readonly url?: string
  readonly urls?: readonly string[]
}): readonly string[] => urls ?? (url === undefined ? [] : [url])
