import type { Static, TProperties } from 'typebox'
import { Type } from '../base/schema.ts'

/** Bodies of the admin API. The configuration's schema checks models and pools; only the frame is checked here. */
const because = Type.String({ minLength: 1, maxLength: 500, pattern: '\\S' })
const thing = Type.Record(Type.String(), Type.Unknown())
const identifier = Type.String({ minLength: 1, maxLength: 256 })

const frame = <const T extends TProperties>(properties: T) =>
  Type.Object({ ...properties, because }, { additionalProperties: false })

/** Most items in one call: a whole registry is imported in a few calls. */
const MANY = 200

export const ModelPutBody = frame({
  model: Type.Optional(thing),
  releases: Type.Optional(Type.Array(thing, { maxItems: MANY })),
  pools: Type.Optional(Type.Array(thing, { maxItems: MANY })),
})
export type ModelPutBody = Static<typeof ModelPutBody>

export const ReasonBody = frame({})
export type ReasonBody = Static<typeof ReasonBody>

/** Whose name the audit is to forget. */
export const EraseBody = frame({
  tenant: identifier,
  what: Type.Union([Type.Literal('user'), Type.Literal('key')]),
  name: Type.String({ minLength: 1, maxLength: 1_024 }),
})

export const ReplicaPutBody = frame({ pool: identifier, url: Type.String({ minLength: 1, maxLength: 2_048 }) })
export type ReplicaPutBody = Static<typeof ReplicaPutBody>

export const ReplicaStateBody = frame({ state: Type.Union([Type.Literal('draining'), Type.Literal('ready')]) })
export type ReplicaStateBody = Static<typeof ReplicaStateBody>

export const TenantStateBody = frame({ state: Type.Union([Type.Literal('paused'), Type.Literal('active')]) })
export type TenantStateBody = Static<typeof TenantStateBody>

export const AdmissionBody = frame({ mode: Type.Union([Type.Literal('observe'), Type.Literal('enforce')]) })
export type AdmissionBody = Static<typeof AdmissionBody>

export const RolloutBody = frame({
  command: Type.Union(
    (['start', 'pause', 'resume', 'promote', 'roll-back', 'undo'] as const).map((word) => Type.Literal(word)),
  ),
  release: Type.Optional(identifier),
})
export interface RolloutBody {
  readonly command: 'start' | 'pause' | 'resume' | 'promote' | 'roll-back' | 'undo'
  readonly release?: string
  readonly because: string
}
