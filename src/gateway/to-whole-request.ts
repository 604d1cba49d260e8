import type { Request, Segment } from '../domain/request.ts'
import { type EmbeddingBody, inputsOf } from '../wire/embeddings.ts'
import { invalidRequest } from '../wire/openai-error.ts'
import { rowTokens, type TensorBody } from '../wire/tensors.ts'
import type { KnownModel } from './model-directory.ts'
import { type Asker, termsOf } from './request-terms.ts'
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
  const tokens = inputsOf(asked.body).map((input) =>
    typeof input === 'string' ? rules.estimateTokens(input, known.model.name) : input.length,
  )
  return bounded(wholeRequest(asked, known, 'embedding', tokens), 'input', rules)
}

export function toTensorRequest(asked: AskedTensors, rules: RequestRules): Read {
  const known = rules.models.resolve(asked.model)
  if (known === undefined) return noSuchModel(asked.model)
  if ((known.model.kind ?? 'chat') === 'chat') return wrongKind(known, 'takes no tensors')
  if (known.features.tensors !== true) return wrongKind(known, 'takes texts only')
  const tokens = rowTokens(asked.body, (text) => rules.estimateTokens(text, known.model.name))
  return bounded(wholeRequest(asked, known, 'tensors', tokens), 'inputs', rules)
}

function wholeRequest(
  asked: Asker,
  { model }: KnownModel,
  kind: 'embedding' | 'tensors',
  tokens: readonly number[],
): Request {
  return {
    ...termsOf(asked),
    kind,
    model: model.name,
    segments: tokens.map((count): Segment => ({ role: 'user', tokens: Math.max(1, count) })),
    prefixHashes: [],
    outputTokensMax: undefined,
    choiceCount: 1,
    isStreamed: false,
    text: { body: asked.body as Readonly<Record<string, unknown>> },
  }
}

function bounded(request: Request, param: string, { promptTokensMax = Number.POSITIVE_INFINITY }: RequestRules): Read {
  const longest = Math.max(...request.segments.map(({ tokens }) => tokens))
  if (longest <= promptTokensMax) return { kind: 'ok', request }
  const message = `One input has about ${longest} tokens; at most ${promptTokensMax} are allowed here.`
  return { kind: 'fault', fault: invalidRequest(message, param, 'context-length-exceeded') }
}
