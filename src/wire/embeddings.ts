import type { Static, TSchema } from 'typebox'
import { Type } from '../base/schema.ts'
import type { EngineText, Usage } from '../domain/delta.ts'
import { type Checked, makeCheck } from './check.ts'
import { invalidRequest } from './openai-error.ts'
import { andThen, type ReadBody, readAs } from './read-body.ts'
import { SpillwayOptions, TokenId } from './schemas.ts'
import { membersOf, spliceJson } from './splice-json.ts'
import { isAsTold } from './usage-text.ts'

/**
 * `/v1/embeddings` as OpenAI has it: texts or tokens in, one vector each out, as numbers or as base64 of little-endian
 * 32-bit floats, which the official SDKs ask for.
 */
const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

/** OpenAI's own bound. */
export const INPUTS_MAX = 2_048

/** Far more than any model has. */
const DIMENSIONS_MAX = 1_048_576

export const EmbeddingBody = Type.Object({
  model: Type.String({ minLength: 1, description: 'An embedding model of GET /v1/models, or one of its aliases.' }),
  input: Type.Union(
    [
      Type.String(),
      Type.Array(Type.String(), { minItems: 1 }),
      Type.Array(TokenId, { minItems: 1 }),
      Type.Array(Type.Array(TokenId, { minItems: 1 }), { minItems: 1 }),
    ],
    { description: `A text, a list of at most ${INPUTS_MAX}, or the same as tokens.` },
  ),
  encoding_format: nullable(Type.Enum(['float', 'base64'])),
  dimensions: nullable(
    Type.Integer({
      minimum: 1,
      maximum: DIMENSIONS_MAX,
      description: 'Shorter vectors: cut to this length and rescaled.',
    }),
  ),
  user: nullable(Type.String()),
  service_tier: nullable(Type.String()),
  priority: nullable(Type.Number({ description: "vLLM's priority: lower goes sooner." })),
  spillway: nullable(SpillwayOptions),
})

export type EmbeddingBody = Static<typeof EmbeddingBody>

const checkShape = makeCheck(EmbeddingBody)

export const checkEmbedding = (json: unknown): Checked<EmbeddingBody> => andThen(checkShape(json), checkInput)

export const readEmbedding = (bytes: Buffer, onlyModel?: string): Checked<ReadBody<EmbeddingBody>> =>
  readAs(checkEmbedding, bytes, onlyModel)

function checkInput(body: EmbeddingBody): Checked<EmbeddingBody> {
  const inputs = inputsOf(body)
  const wrong = (message: string, param = 'input'): Checked<EmbeddingBody> => ({
    kind: 'fault',
    fault: invalidRequest(`Invalid '${param}': ${message}`, param, 'invalid-value'),
  })
  if (inputs.length > INPUTS_MAX)
    return wrong(`at most ${INPUTS_MAX} inputs are allowed, but there are ${inputs.length}.`)
  const empty = inputs.indexOf('')
  if (empty < 0) return { kind: 'ok', value: body }
  return wrong('an empty text has no vector.', Array.isArray(body.input) ? `input[${empty}]` : 'input')
}

/** Each text, or each list of tokens. */
export function inputsOf({ input }: Pick<EmbeddingBody, 'input'>): ReadonlyArray<string | readonly number[]> {
  if (typeof input === 'string') return [input]
  return typeof input[0] === 'number' ? [input as number[]] : (input as Array<string | number[]>)
}

export interface EmbeddingAnswer {
  readonly model: string
  readonly vectors: readonly Float32Array[]
  readonly usage: Usage
  readonly isBase64: boolean
  /** Fields beside OpenAI's. */
  readonly more?: Readonly<Record<string, unknown>>
}

export function embeddingAnswer({ model, vectors, usage, isBase64, more }: EmbeddingAnswer): string {
  const data = vectors.map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: isBase64 ? toBase64(vector) : [...vector],
  }))
  const counts = { prompt_tokens: usage.promptTokens, total_tokens: usage.promptTokens }
  return JSON.stringify({ object: 'list', data, model, usage: counts, ...more })
}

/** The engine's own answer, with the model's name and the usage that are ours to change: numbers stay as they came. */
export function relayedEmbedding(
  { json, keepsModel }: EngineText,
  { model, usage, more = {} }: Pick<EmbeddingAnswer, 'model' | 'usage' | 'more'>,
): string {
  const members = membersOf(json) ?? []
  const has = (name: string): boolean => members.some((member) => member.name === name)
  const counts = JSON.stringify({ prompt_tokens: usage.promptTokens, total_tokens: usage.promptTokens })
  const changes = {
    object: has('object') ? undefined : '"list"',
    model: keepsModel && has('model') ? undefined : JSON.stringify(model),
    usage: has('usage') && isAsTold(usage) ? undefined : counts,
    ...Object.fromEntries(Object.entries(more).map(([name, value]) => [name, JSON.stringify(value)])),
  }
  return spliceJson(json, changes, members)
}

/** How an engine's vectors are written; undefined where they are not all alike. */
export function encodingOf(json: unknown): 'base64' | 'float' | undefined {
  const { data } = json as { data: ReadonlyArray<{ embedding?: unknown }> }
  const isText = typeof data[0]?.embedding === 'string'
  if (!data.every(({ embedding }) => (typeof embedding === 'string') === isText)) return undefined
  return isText ? 'base64' : 'float'
}

/** The vector's bytes in little-endian order, on any machine. */
function toBase64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (let i = 0; i < vector.length; i++) bytes.writeFloatLE(vector[i] as number, i * 4)
  return bytes.toString('base64')
}

/** The vectors of an engine's answer in the order of the inputs, in either encoding. Undefined when it has none. */
export function readVectors(json: unknown): readonly Float32Array[] | undefined {
  const { data } = (typeof json === 'object' && json !== null ? json : {}) as { data?: unknown }
  if (!Array.isArray(data) || data.length === 0) return undefined
  const vectors: Float32Array[] = []
  for (const [position, row] of (data as Array<{ index?: unknown; embedding?: unknown } | null>).entries()) {
    const vector = vectorOf(row?.embedding)
    const index = typeof row?.index === 'number' ? row.index : position
    if (vector === undefined || !Number.isInteger(index) || index < 0 || index >= data.length) return undefined
    vectors[index] = vector
  }
  return vectors.length === data.length && !vectors.includes(undefined as never) ? vectors : undefined
}

function vectorOf(embedding: unknown): Float32Array | undefined {
  if (Array.isArray(embedding)) {
    return embedding.every((part) => typeof part === 'number') ? Float32Array.from(embedding) : undefined
  }
  if (typeof embedding !== 'string') return undefined
  const bytes = Buffer.from(embedding, 'base64')
  if (bytes.length === 0 || bytes.length % 4 !== 0) return undefined
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4))
}

/** The first dimensions, scaled to length 1: models trained for it (Matryoshka) keep their meaning there. */
export function shortened(vector: Float32Array, dimensions: number | undefined): Float32Array {
  if (dimensions === undefined || dimensions >= vector.length) return vector
  const cut = vector.slice(0, dimensions)
  const length = Math.sqrt(cut.reduce((sum, part) => sum + part * part, 0))
  return length === 0 ? cut : cut.map((part) => part / length)
}
