import type { Request, Segment } from '../domain/request.ts'
import { type EmbeddingBody, inputsOf } from '../wire/embeddings.ts'
import { rowTokens, type TensorBody } from '../wire/tensors.ts'
import { cacheSaltOf } from '../wire/vllm.ts'
import type { KnownModel } from './model-directory.ts'
import { type Asker, askNameOf, termsOf } from './request-terms.ts'
import { screeningOf } from './screen-body.ts'
import { noSuchModel, type Read, type RequestRules, wrongKind } from './to-request.ts'

/**
 * A checked body for an answer without streaming becomes a `Request`: texts for vectors, or tensors for tensors. Its
 * segments are the rows of its batch; their tokens, estimated from the body's shape, are its cost.
 */
export interface AskedEmbedding extends Asker {
  readonly body: EmbeddingBody
}

export interface AskedTensors extends Asker {
  readonly body: TensorBody
  /** From the address: the body does not name the model. */
  readonly model: string
}

export function toEmbeddingRequest(asked: AskedEmbedding, rules: RequestRules): Read {
  const known = rules.models.resolve(asked.body.model)
  if (known === undefined) return noSuchModel(asked.body.model)
  if (known.model.kind !== 'embedding') return wrongKind(known, 'makes no vectors')
  if (known.features.vectors !== true) return wrongKind(known, 'takes tensors only')
  const inputs = inputsOf(asked.body)
  const texts = (): string[] => inputs.filter((input) => typeof input === 'string')
  const hasTexts = inputs.some((input) => typeof input === 'string')
  const rows = rowsOf(inputs, rules.estimateTokens)
  const request = { ...wholeRequest(asked, known, 'embedding', rows), cacheSalt: cacheSaltOf(asked.body) }
  return { kind: 'ok', request: estimatedIf(hasTexts, request), countable: { texts, withCounts } }

  function withCounts(counts: readonly number[]): Request {
    let nth = 0
    const segments = rowsOf(inputs, (text) => counts[nth++] ?? rules.estimateTokens(text))
    return { ...request, segments }
  }
}

export function toTensorRequest(asked: AskedTensors, rules: RequestRules): Read {
  const known = rules.models.resolve(asked.model)
  if (known === undefined) return noSuchModel(asked.model)
  if ((known.model.kind ?? 'chat') === 'chat') return wrongKind(known, 'takes no tensors')
  if (known.features.tensors !== true) return wrongKind(known, 'takes texts only')
  const segments = rowTokens(asked.body, rules.estimateTokens).map(rowOf)
  const request = wholeRequest(asked, known, 'tensors', segments)
  // Rows of tensors share their tokens evenly, so texts among them are left at their estimate.
  const hasTexts = asked.body.inputs.some(({ datatype }) => datatype === 'BYTES')
  return {
    kind: 'ok',
    request: estimatedIf(hasTexts, request),
    countable: { texts: () => [], withCounts: () => request },
  }
}

function wholeRequest(
  asked: Asker,
  { model }: KnownModel,
  kind: 'embedding' | 'tensors',
  segments: readonly Segment[],
): Request {
  return {
    ...termsOf(asked),
    kind,
    model: model.name,
    segments,
    prefixHashes: [],
    outputTokensMax: undefined,
    choiceCount: 1,
    isStreamed: false,
    ...(asked.found !== undefined && { screening: screeningOf(asked.found, asked.found.texts) }),
    text: {
      body: asked.body as Readonly<Record<string, unknown>>,
      ...('raw' in asked && typeof asked.raw === 'string' && { raw: asked.raw }),
    },
    askName: 'raw' in asked && typeof asked.raw === 'string' ? askNameOf(asked.raw) : undefined,
  }
}

const rowsOf = (inputs: readonly (string | readonly number[])[], tokensOf: (text: string) => number): Segment[] =>
  inputs.map((input) => rowOf(typeof input === 'string' ? tokensOf(input) : input.length))

const rowOf = (tokens: number): Segment => ({ role: 'user', tokens: Math.max(1, tokens) })

const estimatedIf = (isEstimated: boolean, request: Request): Request =>
  isEstimated ? { ...request, isEstimated } : request
