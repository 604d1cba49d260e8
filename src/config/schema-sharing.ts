import { Type } from '../base/schema.ts'
import { SHARING_DEFAULTS } from '../policy/sharing/slice-book.ts'
import { TlsSchema } from './schema-backends.ts'
import { durationMs, NAME_PATTERN, section } from './schema-fields.ts'

/** Limits that several gateways keep together, and the store in which they do. */

/** One address, or several with commas: one text, so that the environment can hold it. */
const REDIS_URLS = '^rediss?://[^\\s,]+(,rediss?://[^\\s,]+)*$'

const RedisSchema = section(
  {
    url: Type.Optional(
      Type.String({
        pattern: REDIS_URLS,
        description:
          'Address of Redis or Valkey, as `redis://host:6379`, or `rediss://` with TLS. Several addresses with commas between them: nodes of a cluster, or sentinels. If absent, each gateway enforces limits by itself.',
      }),
    ),
    kind: Type.Enum(['server', 'sentinel', 'cluster'], {
      default: 'server',
      description:
        'What is at the address: one `server`, the `sentinel`s that watch over one, or nodes of a `cluster`.',
    }),
    masterName: Type.String({
      default: 'mymaster',
      minLength: 1,
      maxLength: 128,
      description: 'Name of the master at the sentinels.',
    }),
    username: Type.Optional(Type.String({ minLength: 1, description: 'User of Redis; the default user if absent.' })),
    password: Type.Optional(
      Type.String({ minLength: 1, description: 'Password of Redis; prefer the environment, or `passwordFile`.' }),
    ),
    passwordFile: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          'File with the password of Redis, as a secret that is mounted; line breaks at its end are ignored.',
      }),
    ),
    tls: Type.Optional(TlsSchema),
  },
  'The lease store in Redis 6.2 or later, or Valkey.',
)

export const SharingSchema = section(
  {
    redis: RedisSchema,
    name: Type.String({
      default: 'spillway',
      pattern: NAME_PATTERN,
      maxLength: 64,
      description: 'Name of the platform in the store. Gateways with the same name share limits; others do not.',
    }),
    scope: Type.Enum(['region', 'platform'], {
      default: 'region',
      description:
        'Gateways that share a limit. `region`: those of one region (`regions.local`), so that each region has the whole limit. `platform`: those of all regions, which must then use one store.',
    }),
    ttlMs: Type.Integer({
      default: SHARING_DEFAULTS.ttlMs,
      minimum: 500,
      maximum: 60_000,
      description:
        'Time after which a gateway that the store has not heard counts as silent, in milliseconds; its share is then held back for it. The same at all gateways.',
    }),
    forgetMs: durationMs(SHARING_DEFAULTS.forgetMs, {
      minimum: 10_000,
      description:
        'Time after which a silent gateway is forgotten, in milliseconds; its share then goes to others, and `strict` allowances are refused at it. The same at all gateways.',
    }),
  },
  'Limits of tenants over several gateways (docs/operations/scale-out.md).',
)
