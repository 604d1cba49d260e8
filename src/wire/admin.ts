import Type from 'typebox'

/** Bodies of the admin API. What models and pools hold is the configuration's to check; here only their frame is. */
const because = Type.String({ minLength: 1, maxLength: 500, pattern: '\\S' })
const thing = Type.Record(Type.String(), Type.Unknown())
const identifier = Type.String({ minLength: 1, maxLength: 256 })

const frame = <const T extends Type.TProperties>(properties: T) =>
  Type.Object({ ...properties, because }, { additionalProperties: false })

/** As many as one call may bring: a whole registry is imported in a few. */
const MANY = 200

export const ModelPutBody = frame({
  model: Type.Optional(thing),
  releases: Type.Optional(Type.Array(thing, { maxItems: MANY })),
  pools: Type.Optional(Type.Array(thing, { maxItems: MANY })),
})
export type ModelPutBody = Type.Static<typeof ModelPutBody>

export const ReasonBody = frame({})
export type ReasonBody = Type.Static<typeof ReasonBody>

export const ReplicaPutBody = frame({ pool: identifier, url: Type.String({ minLength: 1, maxLength: 2_048 }) })
export type ReplicaPutBody = Type.Static<typeof ReplicaPutBody>

export const ReplicaStateBody = frame({ state: Type.Union([Type.Literal('draining'), Type.Literal('ready')]) })
export type ReplicaStateBody = Type.Static<typeof ReplicaStateBody>

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
