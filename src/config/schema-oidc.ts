import { Type } from '../base/schema.ts'
import { ROLES } from '../domain/actor.ts'
import * as defaults from './defaults.ts'
import { TlsSchema } from './schema-backends.ts'
import { httpUrl, item, name, section } from './schema-fields.ts'
import { AllowanceSchema } from './schema-tenants.ts'

/** Issuers of tokens (OpenID Connect), beside keys. Which claims make whom the caller. */

/** No `none` and no HMAC: with a public key for its secret, anybody could sign. */
const TOKEN_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

const claim = (description: string) => Type.String({ minLength: 1, maxLength: 256, description })

const seconds = (byDefault: number, bounds: { minimum: number; maximum: number; description: string }) =>
  Type.Integer({ default: byDefault, ...bounds })

const IssuerSchema = item(
  {
    id: name('Name of the issuer in logs, metrics and usage records.'),
    issuer: httpUrl('Issuer as its tokens name it (`iss`), letter for letter.'),
    audience: Type.Array(Type.String({ minLength: 1, maxLength: 1_024 }), {
      minItems: 1,
      maxItems: 20,
      uniqueItems: true,
      description: 'Audiences (`aud`) of which a token must have one: what this gateway is called at the issuer.',
    }),
    jwksUrl: Type.Optional(
      httpUrl(
        'Address of the issuer\u2019s keys (JWKS); asked of `ISSUER/.well-known/openid-configuration` if absent.',
      ),
    ),
    algorithms: Type.Array(Type.Enum([...TOKEN_ALGORITHMS]), {
      default: ['RS256', 'ES256'],
      minItems: 1,
      uniqueItems: true,
      description: 'Algorithms that tokens may be signed with.',
    }),
    leewayS: seconds(defaults.TOKEN_LEEWAY_S, {
      minimum: 0,
      maximum: 300,
      description:
        'Time by which clocks may differ, in seconds: a token counts this long before `nbf` and after `exp`.',
    }),
    refreshS: seconds(defaults.TOKEN_KEYS_REFRESH_S, {
      minimum: 10,
      maximum: 86_400,
      description:
        'Interval at which the issuer\u2019s keys are read again, in seconds. A token with an unknown key causes one reading at once, every 10 s at most.',
    }),
    tenant: Type.Optional(name('Tenant of every token of this issuer. If absent, `tenantClaim` says it.')),
    tenantClaim: Type.Optional(
      claim('Claim that names the tenant; `tenant` if absent. Dots lead into objects, as `resource_access.llm.team`.'),
    ),
    tenants: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description:
          'Tenants by the values of `tenantClaim`, as `{ team-a: acme }`; other values are ignored. If absent, the value is the tenant\u2019s id.',
      }),
    ),
    orgs: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        maxItems: 1_000,
        description:
          'Orgs whose tenants the tokens of this issuer may name; all if absent. Set it where administrators of orgs choose ids of tenants that a claim could name too.',
      }),
    ),
    roleClaim: Type.Optional(claim('Claim that holds roles: a text or a list of texts. Dots lead into objects.')),
    roles: Type.Record(Type.String(), Type.Enum([...ROLES]), {
      default: {},
      description:
        'Roles by the values of `roleClaim`: `platform-admin` opens the admin API, `metrics-reader` the metrics; `org-admin`, `auditor`, `billing-reader` and `member` count in the org of the token\u2019s tenant. Other values are ignored.',
    }),
    allowance: AllowanceSchema,
    plainHttp: Type.Boolean({
      default: false,
      description:
        'Whether keys may be read without TLS from another host. Anyone on the path can then replace them, and so sign tokens.',
    }),
    tls: Type.Optional(TlsSchema),
  },
  'An issuer of tokens. `allowance` is that of each subject, within its tenant\u2019s.',
)

export const OidcSchema = section(
  {
    issuers: Type.Array(IssuerSchema, {
      default: [],
      maxItems: 20,
      description: 'Issuers whose tokens are accepted beside keys.',
    }),
  },
  'Tokens of OpenID Connect issuers (JWT), beside keys.',
)
