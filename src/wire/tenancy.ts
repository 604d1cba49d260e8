import type { TProperties, TSchema } from 'typebox'
import { Type } from '../base/schema.ts'
import { KEY_ROLES } from '../domain/actor.ts'

/** Bodies of the admin API for orgs, tenants and keys. Only shapes are checked here; the authority checks what they mean. */
const because = Type.String({ minLength: 1, maxLength: 500, pattern: '\\S' })
const id = Type.String({ minLength: 1, maxLength: 256 })
const words = Type.Array(Type.String({ maxLength: 256 }), { maxItems: 256 })
const rate = Type.Object({ perMinute: Type.Number(), burst: Type.Number() }, { additionalProperties: false })
const orNull = <const T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

/** Money is in nano-dollars at list price. */
const budget = Type.Object(
  {
    period: Type.Union([
      Type.Enum(['day', 'month']),
      Type.Object({ hours: Type.Number() }, { additionalProperties: false }),
    ]),
    nanoMax: Type.Optional(Type.Number()),
    tokensMax: Type.Optional(Type.Number()),
    isHard: Type.Boolean(),
    marks: Type.Array(Type.Number(), { maxItems: 8 }),
    model: Type.Optional(Type.String({ maxLength: 256 })),
    isPerUser: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

const terms = Type.Optional(
  Type.Object(
    {
      notBeforeAtMs: orNull(Type.Number()),
      expiresAtMs: orNull(Type.Number()),
      models: orNull(words),
      routes: orNull(words),
      bands: orNull(words),
      clientRanges: orNull(words),
      allowance: orNull(
        Type.Object(
          {
            requests: Type.Optional(rate),
            tokens: Type.Optional(rate),
            concurrencyMax: Type.Optional(Type.Number()),
            budgets: Type.Optional(Type.Array(budget, { maxItems: 16 })),
          },
          { additionalProperties: false },
        ),
      ),
      canInfer: orNull(Type.Boolean()),
      canManage: orNull(Type.Boolean()),
    },
    { additionalProperties: false, description: 'Bounds; null sets a part back to the parent’s.' },
  ),
)

const storing = orNull(
  Type.Object(
    {
      ttlS: Type.Optional(Type.Number()),
      countMax: Type.Optional(Type.Number()),
      bytesMax: Type.Optional(Type.Number()),
      shadows: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false, description: 'Storing of answers (`store: true`); null ends it.' },
  ),
)

const orgFields = { weight: Type.Optional(Type.Number()), slos: Type.Optional(words), terms }
const tenantFields = {
  weight: Type.Optional(Type.Number()),
  slo: Type.Optional(Type.String({ maxLength: 256 })),
  contract: Type.Optional(Type.Enum(['degrade', 'reject'])),
  bidMax: Type.Optional(Type.Number()),
  queueUsMax: orNull(Type.Number()),
  answerCache: orNull(
    Type.Object(
      {
        similarityMin: Type.Optional(Type.Number()),
        temperatureMax: Type.Optional(Type.Number()),
        ttlUs: Type.Optional(Type.Number()),
        checkRatio: Type.Optional(Type.Number()),
      },
      { additionalProperties: false, description: 'The answer cache; {} turns it on as the file does, null off.' },
    ),
  ),
  storing,
  screening: orNull(
    Type.Record(Type.String({ maxLength: 64 }), Type.Unknown(), {
      description:
        'Screening in place of the platform’s, as `tenants[].screening` of the settings; null: the platform’s.',
    }),
  ),
  terms,
}
const keyFields = { weight: Type.Optional(Type.Number()), role: Type.Optional(Type.Enum([...KEY_ROLES])), terms }

const closed = <const T extends TProperties>(properties: T) =>
  Type.Object({ ...properties, because }, { additionalProperties: false })

export const OrgCreateBody = closed({ id, ...orgFields })
export const OrgChangeBody = closed(orgFields)
export const TenantCreateBody = closed({ id, orgId: id, ...tenantFields })
export const TenantChangeBody = closed(tenantFields)
export const KeyCreateBody = closed({ id, tenantId: id, ...keyFields })
export const KeyChangeBody = closed(keyFields)
export const KeyRotateBody = closed({
  graceMs: Type.Optional(Type.Number({ description: 'How long the secret before lives on; a day if absent.' })),
})
