import type { Cancellation } from '../base/cancellation.ts'
import type { Result } from '../domain/delta.ts'
import type { ModelKind } from '../domain/fleet.ts'
import type { Request } from '../domain/request.ts'
import { type EmbeddingBody, inputsOf, shortened } from '../wire/embeddings.ts'
import type { OipMetadata } from '../wire/oip.ts'
import { rowTokens, type Tensor, type TensorBody, valuesOf } from '../wire/tensors.ts'
import { HASHED_DIMENSIONS, hashedEmbedding } from './hashed-embedding.ts'
import type { LongWork } from './long-work.ts'
import type { PromptReader } from './prompt-reader.ts'
import { slicesOf } from './text-slices.ts'
import { piecesOf } from './tokenizer.ts'

/**
 * The answers of simulated models without streaming, and how much work they are. The answers are simple and
 * deterministic: vectors of hashed features, scores by the similarity of two texts, and for an image its brightness and
 * main colour. The platform name in the answer says that they are simulated.
 */
export type ResultMade =
  | { readonly kind: 'made'; readonly itemTokens: readonly number[]; readonly result: Result }
  | { readonly kind: 'refused'; readonly because: string; readonly param: string; readonly isTooLong?: boolean }

/** Kinds that can be simulated; nobody simulates sound and pictures. */
export type WholeKind = Exclude<ModelKind, 'chat' | 'audio' | 'image'>

export const isSimulatedWhole = (kind: ModelKind): kind is WholeKind => kind in ANSWERS

export interface SimulatedResultsOptions {
  readonly kind: WholeKind
  readonly reader: PromptReader
  /** Longest input. */
  readonly contextTokensMax: number
}

export class SimulatedResults {
  readonly #options: SimulatedResultsOptions

  constructor(options: SimulatedResultsOptions) {
    this.#options = options
  }

  resultFor(request: Request, cancellation: Cancellation): ResultMade | Promise<ResultMade> {
    const body = (request.text?.body ?? { inputs: [] }) as EmbeddingBody | TensorBody
    const work = 'input' in body ? this.#embed(body) : this.#infer(body)
    return this.#options.reader.run(work, sizeOf(body), cancellation)
  }

  *#embed(body: EmbeddingBody): LongWork<ResultMade> {
    const { reader } = this.#options
    if ((body.dimensions ?? 0) > HASHED_DIMENSIONS) {
      return refused(`Vectors of this model have ${HASHED_DIMENSIONS} dimensions.`, 'dimensions')
    }
    const itemTokens: number[] = []
    const vectors: Float32Array[] = []
    for (const [index, input] of inputsOf(body).entries()) {
      const unknown = typeof input === 'string' ? undefined : input.find((token) => !reader.tokenizer.has(token))
      if (unknown !== undefined) return refused(`Token ${unknown} is not in the vocabulary.`, `input[${index}]`)
      const text = typeof input === 'string' ? input : piecesOf(reader.tokenizer, input).join('')
      const tokens = typeof input === 'string' ? yield* this.#count(text) : input.length
      const tooLong = this.#tooLong(tokens, 'input')
      if (tooLong !== undefined) return tooLong
      itemTokens.push(Math.max(1, tokens))
      vectors.push(unlessZero(shortened(yield* hashedEmbedding(text), body.dimensions ?? undefined)))
    }
    return { kind: 'made', itemTokens, result: { kind: 'vectors', vectors } }
  }

  *#infer(body: TensorBody): LongWork<ResultMade> {
    const { kind } = this.#options
    const missing = simulatedMetadata('', kind).inputs.find(({ name }) => !body.inputs.some((one) => one.name === name))
    if (missing !== undefined) {
      return refused(
        `A simulated ${kind} model takes an input called "${missing.name}" (${missing.datatype}).`,
        'inputs',
      )
    }
    const counts = yield* this.#countAll(body)
    const itemTokens = rowTokens(body, (text) => counts.get(text) ?? 0)
    const longest = itemTokens.reduce((most, tokens) => Math.max(most, tokens), 0)
    const tooLong = this.#tooLong(longest, 'inputs')
    if (tooLong !== undefined) return tooLong
    const input = (name: string): Tensor => body.inputs.find((one) => one.name === name) as Tensor
    const outputs = yield* ANSWERS[kind](input)
    if (typeof outputs === 'string') return refused(outputs, 'inputs')
    const wanted = body.outputs?.map(({ name }) => name)
    const document = { outputs: outputs.filter(({ name }) => wanted === undefined || wanted.includes(name)) }
    return { kind: 'made', itemTokens, result: { kind: 'tensors', document } }
  }

  *#countAll({ inputs }: TensorBody): LongWork<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>()
    for (const input of inputs) {
      if (input.datatype !== 'BYTES') continue
      for (const text of valuesOf(input) as string[]) {
        if (!counts.has(text)) counts.set(text, yield* this.#count(text))
      }
    }
    return counts
  }

  /** Counts in slices; a text that is too long is not counted to its end. */
  *#count(text: string): LongWork<number> {
    const { reader, contextTokensMax } = this.#options
    let tokens = 0
    for (const slice of slicesOf(text)) {
      tokens += reader.tokenizer.encode(slice).length
      if ((yield slice.length) || tokens > contextTokensMax) break
    }
    return tokens
  }

  #tooLong(tokens: number, param: string): ResultMade | undefined {
    const { contextTokensMax } = this.#options
    if (tokens <= contextTokensMax) return undefined
    const because = `One input has ${tokens} tokens; there is room for ${contextTokensMax}.`
    return { kind: 'refused', because, param, isTooLong: true }
  }
}

/** With very few dimensions all may be zero; the vector must have length 1. */
function unlessZero(vector: Float32Array): Float32Array {
  if (vector.every((part) => part === 0)) vector[0] = 1
  return vector
}

/** Number of characters to look at, about. */
function sizeOf(body: EmbeddingBody | TensorBody): number {
  const lists: ReadonlyArray<readonly unknown[] | string> = 'input' in body ? inputsOf(body) : body.inputs.map(valuesOf)
  let size = 0
  for (const list of lists) {
    if (typeof list === 'string') size += list.length
    else for (const value of list) size += typeof value === 'string' ? value.length : 1
  }
  return size
}

const refused = (because: string, param: string): ResultMade => ({ kind: 'refused', because, param })

interface OutputTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly number[]
  readonly data: readonly unknown[]
}

type Answering = (input: (name: string) => Tensor) => LongWork<readonly OutputTensor[] | string>

const ANSWERS: Readonly<Record<WholeKind, Answering>> = {
  *embedding(input) {
    const texts = valuesOf(input('text')) as string[]
    const data: number[] = []
    for (const text of texts) for (const part of yield* hashedEmbedding(text)) data.push(part)
    return [{ name: 'embedding', datatype: 'FP32', shape: [texts.length, HASHED_DIMENSIONS], data }]
  },
  *ranking(input) {
    const [query] = valuesOf(input('query'))
    if (typeof query !== 'string') return 'The input "query" is one text.'
    const asked = yield* hashedEmbedding(query)
    const data: number[] = []
    for (const text of valuesOf(input('documents')) as string[]) {
      const vector = yield* hashedEmbedding(text)
      data.push(vector.reduce((sum, part, i) => sum + part * (asked[i] as number), 0))
    }
    return [{ name: 'scores', datatype: 'FP32', shape: [data.length], data }]
  },
  *vision(input) {
    const { shape, ...rest } = input('image')
    const [count = 0, colours = 0] = shape
    if (shape.length !== 4 || colours !== 3) return 'The input "image" has a shape like [N, 3, HEIGHT, WIDTH].'
    const values = valuesOf({ ...rest, shape }) as number[]
    const labels: string[] = []
    const scores: number[] = []
    const pixels = values.length / Math.max(1, count * colours)
    for (let i = 0; i < count; i++) {
      const means = [0, 1, 2].map((colour) => meanOf(values, (i * colours + colour) * pixels, pixels))
      const { label, score } = describe(means)
      labels.push(label)
      scores.push(score)
      yield pixels * colours
    }
    return [
      { name: 'label', datatype: 'BYTES', shape: [count], data: labels },
      { name: 'score', datatype: 'FP32', shape: [count], data: scores },
    ]
  },
}

function meanOf(values: readonly number[], from: number, count: number): number {
  let sum = 0
  for (let i = from; i < from + count; i++) sum += values[i] as number
  return count === 0 ? 0 : sum / count
}

const COLOURS = ['red', 'green', 'blue'] as const
/** A colour whose share of the sum is above this is the visible one. */
const COLOURED_RATIO = 0.53

/** The main colour of an image, or its brightness where there is none, and how clear it is. */
function describe(means: readonly number[]): { readonly label: string; readonly score: number } {
  const sum = means.reduce((total, mean) => total + Math.abs(mean), 0)
  const strongest = Math.max(...means.map(Math.abs))
  const ratio = sum === 0 ? 0 : strongest / sum
  if (ratio >= COLOURED_RATIO)
    return { label: COLOURS[means.findIndex((m) => Math.abs(m) === strongest)]!, score: ratio }
  // Pixels come as 0…255 or as 0…1.
  const brightness = sum / 3 / (strongest > 1 ? 255 : 1)
  return brightness >= 0.5 ? { label: 'bright', score: brightness } : { label: 'dark', score: 1 - brightness }
}

const TENSORS: Readonly<Record<WholeKind, Pick<OipMetadata, 'inputs' | 'outputs'>>> = {
  embedding: {
    inputs: [{ name: 'text', datatype: 'BYTES', shape: [-1] }],
    outputs: [{ name: 'embedding', datatype: 'FP32', shape: [-1, HASHED_DIMENSIONS] }],
  },
  ranking: {
    inputs: [
      { name: 'query', datatype: 'BYTES', shape: [1] },
      { name: 'documents', datatype: 'BYTES', shape: [-1] },
    ],
    outputs: [{ name: 'scores', datatype: 'FP32', shape: [-1] }],
  },
  vision: {
    inputs: [{ name: 'image', datatype: 'FP32', shape: [-1, 3, -1, -1] }],
    outputs: [
      { name: 'label', datatype: 'BYTES', shape: [-1] },
      { name: 'score', datatype: 'FP32', shape: [-1] },
    ],
  },
}

export function simulatedMetadata(name: string, kind: WholeKind): OipMetadata {
  return { name, versions: [], platform: 'spillway_simulated', ...TENSORS[kind] }
}
