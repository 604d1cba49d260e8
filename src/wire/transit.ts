import { Type } from '../base/schema.ts'
import type { TransitRoute } from '../domain/transit.ts'
import { type Checked, makeCheck } from './check.ts'
import { readJson } from './read-body.ts'

/**
 * The endpoints whose bodies and answers pass through unread, and what each costs. Of a body only `model` is looked at,
 * and what its price depends on; whatever is wrong with the rest, its engine says.
 *
 * A price is in tokens, because budgets are. Where an engine counts tokens, the price is near its count:
 *
 *     speech        tokens of the text                     (characters are what providers charge)
 *     rerank, score tokens of each pair: query + document  (each pair is read alone)
 *     pictures      1,000 each, and the text               (a picture of 1,024 × 1,024 points is about 1,000 tokens)
 *     files         one for each KiB                       (speech at 80 kbit/s: ten tokens a second)
 *     tokens, text  one for each KiB of the body           (no GPU is asked)
 */
export interface TransitWay {
  /** Our own path. */
  readonly path: string
  /** Its name in the description of the API. */
  readonly operationId: string
  readonly route: TransitRoute
  /** The engine's path, under the version or from the server's root. */
  readonly enginePath: string
  readonly isRooted?: true
  readonly takesForms?: true
  readonly summary: string
  readonly price: (ask: TransitAsk) => readonly number[]
}

/** What is known of a body when its price is made. */
export interface TransitAsk {
  readonly fields: Readonly<Record<string, unknown>>
  /** Bytes of the body; undefined when the client does not say. */
  readonly bytes: number | undefined
  readonly estimateTokens: (text: string) => number
}

const TOKENS_PER_PICTURE = 1_000
/** More pictures than any engine makes at once count as this many. */
const PICTURES_MAX = 100
const BYTES_PER_TOKEN = 1_024
/** A body of unknown size is charged as one of eight MiB, twenty minutes of speech. */
const BYTES_UNSAID = 8 << 20
/** Pairs that are priced one by one; the rest are priced together. */
const PAIRS_MAX = 2_048

const ofBytes = ({ bytes = BYTES_UNSAID }: TransitAsk): number => Math.max(1, Math.ceil(bytes / BYTES_PER_TOKEN))

function speechPrice({ fields, estimateTokens }: TransitAsk): number[] {
  return [textTokens(fields['input'], estimateTokens) + textTokens(fields['instructions'], estimateTokens)]
}

function picturePrice(ask: TransitAsk): number[] {
  const wanted = Number(ask.fields['n'] ?? 1)
  const count = Number.isInteger(wanted) && wanted > 0 ? Math.min(wanted, PICTURES_MAX) : 1
  const pictures = Array.from({ length: count }, () => TOKENS_PER_PICTURE)
  return [textTokens(ask.fields['prompt'], ask.estimateTokens), ...pictures]
}

/** vLLM's `/score` has `text_1` and `text_2`, or `queries` and `documents`; everybody's rerank a query and documents. */
function pairPrice({ fields, estimateTokens }: TransitAsk): number[] {
  const query = textTokens(fields['query'] ?? fields['queries'] ?? fields['text_1'], estimateTokens)
  const given = fields['documents'] ?? fields['text_2']
  const documents: readonly unknown[] = Array.isArray(given) ? given : [given]
  const alone = documents.slice(0, PAIRS_MAX).map((document) => query + textTokens(document, estimateTokens))
  if (documents.length <= PAIRS_MAX) return alone
  const rest = documents.slice(PAIRS_MAX).reduce<number>((sum, one) => sum + query + textTokens(one, estimateTokens), 0)
  return [...alone, rest]
}

/** Tokens of a text, of the texts of a list, or of a document in JSON. */
function textTokens(value: unknown, estimateTokens: (text: string) => number): number {
  if (value === undefined || value === null) return 1
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return Math.max(1, estimateTokens(text))
}

const filePrice = (ask: TransitAsk): number[] => [ofBytes(ask)]

export const TRANSIT_WAYS: readonly TransitWay[] = [
  {
    path: '/v1/audio/speech',
    operationId: 'createSpeech',
    route: 'audio',
    enginePath: '/audio/speech',
    summary: 'Speech for a text.',
    price: speechPrice,
  },
  {
    path: '/v1/audio/transcriptions',
    operationId: 'createTranscription',
    route: 'audio',
    enginePath: '/audio/transcriptions',
    takesForms: true,
    summary: 'The text of a recording.',
    price: filePrice,
  },
  {
    path: '/v1/audio/translations',
    operationId: 'createTranslation',
    route: 'audio',
    enginePath: '/audio/translations',
    takesForms: true,
    summary: 'The text of a recording, in English.',
    price: filePrice,
  },
  {
    path: '/v1/images/generations',
    operationId: 'createImage',
    route: 'images',
    enginePath: '/images/generations',
    summary: 'Pictures for a text.',
    price: picturePrice,
  },
  {
    path: '/v1/images/edits',
    operationId: 'createImageEdit',
    route: 'images',
    enginePath: '/images/edits',
    takesForms: true,
    summary: 'Pictures changed by a text.',
    price: (ask) => [...picturePrice(ask), ofBytes(ask)],
  },
  {
    path: '/v1/images/variations',
    operationId: 'createImageVariation',
    route: 'images',
    enginePath: '/images/variations',
    takesForms: true,
    summary: 'Pictures like a picture.',
    price: (ask) => [...picturePrice(ask), ofBytes(ask)],
  },
  {
    path: '/v1/rerank',
    operationId: 'rerank',
    route: 'rerank',
    enginePath: '/rerank',
    summary: 'Documents in the order in which they answer a query.',
    price: pairPrice,
  },
  {
    path: '/rerank',
    operationId: 'rerankWithoutVersion',
    route: 'rerank',
    enginePath: '/rerank',
    summary: 'The same as /v1/rerank.',
    price: pairPrice,
  },
  {
    path: '/v1/score',
    operationId: 'score',
    route: 'rerank',
    enginePath: '/score',
    summary: 'How alike two texts are (vLLM).',
    price: pairPrice,
  },
  {
    path: '/tokenize',
    operationId: 'tokenize',
    route: 'tokenize',
    enginePath: '/tokenize',
    isRooted: true,
    summary: 'The tokens of a text (vLLM).',
    price: filePrice,
  },
  {
    path: '/detokenize',
    operationId: 'detokenize',
    route: 'tokenize',
    enginePath: '/detokenize',
    isRooted: true,
    summary: 'The text of tokens (vLLM).',
    price: filePrice,
  },
]

/** A body in JSON as far as it is looked at. */
export const TransitBodySchema = Type.Object({
  model: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      description: 'A model that serves this endpoint; the only one of them if absent.',
    }),
  ),
})

const checkTransit = makeCheck(TransitBodySchema)

export function readTransit(bytes: Buffer): Checked<Record<string, unknown>> {
  const json = readJson(bytes)
  if (json.kind === 'fault') return json
  const checked = checkTransit(json.value)
  return checked.kind === 'fault' ? checked : { kind: 'ok', value: checked.value as Record<string, unknown> }
}

/** The body for the engine: as it came, where the engine's name for the model is the client's. */
export function transitBody(bytes: Buffer, fields: Readonly<Record<string, unknown>>, model: string): Buffer {
  return fields['model'] === model ? bytes : Buffer.from(JSON.stringify({ ...fields, model }))
}

/** Tokens beyond which a count cannot be true. */
const COUNT_MAX = 1e9

/** Tokens that an engine says it used, in the fields of any of these endpoints; undefined when it does not say. */
export function transitUsage(json: unknown): number | undefined {
  const { usage } = (typeof json === 'object' && json !== null ? json : {}) as {
    usage?: Record<string, unknown> | null
  }
  if (typeof usage !== 'object' || usage === null) return undefined
  const count = (name: string): number | undefined => {
    const value = usage[name]
    return typeof value === 'number' && value >= 0 && value <= COUNT_MAX ? value : undefined
  }
  const input = count('input_tokens') ?? count('prompt_tokens')
  const output = count('output_tokens') ?? count('completion_tokens')
  return count('total_tokens') ?? (input === undefined ? undefined : input + (output ?? 0))
}
