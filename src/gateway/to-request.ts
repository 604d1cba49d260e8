import type { IncomingHttpHeaders } from 'node:http'
import type { Instant } from '../base/clock.ts'
import { fnv1a32 } from '../base/rng.ts'
import type { ModelKind } from '../domain/fleet.ts'
import {
  cacheScopeOf,
  type NativeText,
  type Request,
  type RequestKind,
  type RetrievalWish,
  type Segment,
} from '../domain/request.ts'
import type { ScreenText } from '../domain/screening.ts'
import { cacheableQuestion } from '../wire/cacheable-question.ts'
import { mustEndWhole } from '../wire/engine-knobs.ts'
import { type FaultCode, invalidRequest, type WireFault } from '../wire/openai-error.ts'
import { type PromptTexts, promptTexts, type SegmentText } from '../wire/prompt-text.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import { cacheSaltOf } from '../wire/vllm.ts'
import type { Caller } from './authenticate.ts'
import type { KnownModel, ModelDirectory } from './model-directory.ts'
import { askNameOf, headerText, positiveHeader, termsOf } from './request-terms.ts'
import { type BodyScreens, type FoundInBody, screeningOf } from './screen-body.ts'

/**
 * A checked body and its caller become a `Request`: text becomes segments, and the client's wishes become a band, a
 * bid, an SLO and a deadline, each clamped to what the tenant may ask for.
 */
export interface Asked {
  readonly id: string
  readonly kind: RequestKind
  readonly body: ChatBody | CompletionBody
  /** The body as the client wrote it. */
  readonly raw?: string | undefined
  /** The body before it was translated. */
  readonly native?: NativeText | undefined
  readonly headers: IncomingHttpHeaders
  readonly caller: Caller
  readonly now: Instant
  /** What the screens found in the body; absent where the tenant has none. */
  readonly found?: FoundInBody | undefined
}

export interface RequestRules {
  readonly models: ModelDirectory
  readonly choicesMax: number
  /** Longest prompt for any model; undefined leaves the limit to the model. */
  readonly promptTokensMax: number | undefined
  readonly estimateTokens: (text: string) => number
  /** Counts what is estimated near a bound; absent, every prompt is served as estimated. */
  readonly counter?: PromptCounter
  /** Headers that rules of rollouts look at, in lower case; no other header is kept. */
  readonly flagHeaders?: readonly string[]
  /** Number of passages for a request that does not say, and the most for any. */
  readonly passagesDefault: number
  readonly passagesMax: number
  /** The finder of a policy's input screens; absent on servers whose tenants have none. */
  readonly finderOf?: BodyScreens['finderOf']
  readonly names?: BodyScreens['names']
  /** A secret of this process, so that block names cannot be guessed or compared between processes. */
  readonly salt: string
}

/** The true size of a prompt, for `prompt-size.ts`. */
export interface PromptCounter {
  /** Whether this model's tokens can be counted at all. */
  readonly knows: (model: string) => boolean
  /** Undefined when that is not known in time. Never rejects. */
  readonly count: (question: {
    readonly tenantId: string
    readonly texts: readonly string[]
    readonly tokensMax: number
  }) => Promise<{ readonly counts: readonly number[] } | undefined>
  /** Whether a bound is near enough for the true size to matter. */
  readonly isInDoubt: (request: Request) => boolean
}

export interface ReadRequest {
  readonly kind: 'ok'
  readonly request: Request
  readonly countable: Countable
}

/** The texts of a request whose tokens are estimated, and the same request with their true counts. */
export interface Countable {
  readonly texts: () => readonly string[]
  /** One count for each text, in order; texts whose count is missing stay as estimated. */
  readonly withCounts: (counts: readonly number[]) => Request
}

export type Read = ReadRequest | { readonly kind: 'fault'; readonly fault: WireFault }

const fault = (message: string, param: string, code: FaultCode): Read => ({
  kind: 'fault',
  fault: invalidRequest(message, param, code),
})

export const noSuchModel = (name: string): Read =>
  fault(`The model '${name}' does not exist or you do not have access to it.`, 'model', 'model-not-found')

/** The model exists but serves another kind of request; name the endpoint to use. */
export function wrongKind({ model }: KnownModel, because: string): Read {
  const advice = ADVICE[model.kind ?? 'chat'].replaceAll('NAME', model.name)
  return fault(`Invalid 'model': '${model.name}' ${because}. ${advice}`, 'model', 'model-not-supported')
}

const ADVICE: Readonly<Record<ModelKind, string>> = {
  chat: 'Ask it at /v1/chat/completions or /v1/completions.',
  embedding: 'Ask it at /v1/embeddings, or in tensors at /v2/models/NAME/infer.',
  ranking: 'Ask it at /v2/models/NAME/infer.',
  vision: 'Ask it at /v2/models/NAME/infer.',
  audio: 'Ask it at /v1/audio.',
  image: 'Ask it at /v1/images.',
}

/** Tokens that a chat template puts around each message, about, and in front of the answer. */
const TOKENS_PER_MESSAGE = 4
const TOKENS_PER_ANSWER = 3

export function toRequest(asked: Asked, rules: RequestRules): Read {
  const { body, caller } = asked
  const known = rules.models.resolve(body.model)
  if (known === undefined) return noSuchModel(body.model)
  if ((known.model.kind ?? 'chat') !== 'chat') return wrongKind(known, 'does not generate text')
  const prompt = promptTexts(body)
  const texts = prompt.segments
  const promptCount = asked.kind === 'completion' ? texts.length : 1
  const choiceCount = (body.n ?? 1) * promptCount
  if (choiceCount > rules.choicesMax) {
    const param = promptCount > rules.choicesMax ? 'prompt' : 'n'
    return fault(
      `Invalid '${param}': at most ${rules.choicesMax} choices are allowed, but ${choiceCount} were asked for.`,
      param,
      'integer-above-max-value',
    )
  }
  const unsupported = unsupportedFeature(body, known)
  if (unsupported !== undefined) return unsupported
  const retrieval = readRetrieval(asked, texts, rules)
  if (retrieval !== undefined && !('messages' in body)) {
    const param = 'spillway.retrieval'
    return fault(`Invalid '${param}': passages are for chat completions only.`, param, 'unsupported-parameter')
  }
  const terms = caller.tenant.answerCache
  const cacheable =
    terms !== undefined && 'messages' in body ? cacheableQuestion(body, terms.temperatureMax) : undefined
  const screening =
    asked.found === undefined ? undefined : screeningOf(asked.found, screenTexts(prompt), retrieval !== undefined)
  const { segments, fixedTokens } = sizesOf(asked.kind, prompt, rules.estimateTokens)
  const cacheSalt = cacheSaltOf(body)
  const scope = cacheScopeOf({ tenant: caller.tenant, cacheSalt })
  // Every request has every field, if only as undefined: one shape is quicker to make, and to read, than many.
  const request: Request = {
    ...termsOf(asked),
    kind: asked.kind,
    model: known.model.name,
    segments,
    fixedTokens,
    isEstimated: true,
    prefixHashes: prefixHashes(`${rules.salt}\u0000${known.model.name}\u0000${scope}`, texts),
    cacheSalt,
    outputTokensMax: outputBound(body),
    choiceCount,
    isStreamed: body.stream === true,
    text: { body: body as Readonly<Record<string, unknown>>, raw: asked.raw, native: asked.native },
    askName: askNameOf(asked.native?.raw ?? asked.raw),
    flags: flagsOf(asked, rules),
    hasTools: 'tools' in body && (body.tools?.length ?? 0) > 0 ? true : undefined,
    mustEndWhole: mustEndWhole(body) ? true : undefined,
    retrieval,
    // What is cached is told to others, and a placeholder stands for one request's value.
    cacheable: screening?.restorer === undefined ? cacheable : undefined,
    screening,
  }
  return { kind: 'ok', request, countable: countableOf(request, prompt, rules.estimateTokens) }
}

/** The prompt as judges read it. */
function screenTexts({ segments, fixedText }: PromptTexts): ScreenText[] {
  const texts: ScreenText[] = []
  for (const { role, text, otherText } of segments) {
    if (text !== '') texts.push({ role, text })
    if (otherText !== '') texts.push({ role: role === 'tool' ? 'tool' : 'other', text: otherText })
  }
  if (fixedText !== '') texts.push({ role: 'other', text: fixedText })
  return texts
}

type Sizes = Pick<Request, 'segments' | 'fixedTokens'>

/** Tokens of each segment, and of what stands beside the segments. Asks for each text once, in the order of `textsIn`. */
function sizesOf(kind: RequestKind, prompt: PromptTexts, tokensOf: (text: string) => number): Sizes {
  const isChat = kind === 'chat'
  const sizeOf = (text: string): number => (text === '' ? 0 : tokensOf(text))
  const segments = prompt.segments.map(({ role, text, otherText, otherTokens }): Segment => {
    const textTokens = sizeOf(text) + sizeOf(otherText)
    return { role, tokens: Math.max(1, textTokens + otherTokens + (isChat ? TOKENS_PER_MESSAGE : 0)) }
  })
  const fixed = sizeOf(prompt.fixedText)
  // What is fixed goes in front of every prompt of a list.
  const fixedTokens = isChat ? fixed + TOKENS_PER_ANSWER : fixed * segments.length
  return fixedTokens === 0 ? { segments } : { segments, fixedTokens }
}

function countableOf(request: Request, prompt: PromptTexts, estimateTokens: (text: string) => number): Countable {
  return {
    texts: () => textsIn(prompt),
    withCounts(counts) {
      const { isEstimated: _, ...rest } = request
      let nth = 0
      return { ...rest, ...sizesOf(request.kind, prompt, (text) => counts[nth++] ?? estimateTokens(text)) }
    },
  }
}

function textsIn({ segments, fixedText }: PromptTexts): string[] {
  const all = segments.flatMap(({ text, otherText }) => [text, otherText])
  return [...all, fixedText].filter((text) => text !== '')
}

/** Characters of text in a block of the engine's prefix cache, about. */
const CHARACTERS_PER_BLOCK = 64
/** Blocks named per prompt: enough to find the replica that has the beginning cached, and hashing stays under 10 µs. */
const PREFIX_BLOCKS_MAX = 128

/**
 * Names of the prompt's leading blocks. Each is chained to the one before and salted with a secret (of this process, or of
 * the gateways that share a lease store) and the cache scope, so that equal text of two tenants has different names (law L13).
 * They approximate the engine's own blocks, from characters instead of tokens; that suffices to send a conversation to the
 * replica that has computed its beginning.
 */
function prefixHashes(salt: string, texts: readonly SegmentText[]): number[] {
  const hashes: number[] = []
  let hash = fnv1a32(salt)
  let inBlock = 0
  for (const { role, text } of texts) {
    hash = Math.imul(hash ^ role.length, 0x01000193)
    for (let i = 0; i < text.length; i++) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
      if (++inBlock < CHARACTERS_PER_BLOCK) continue
      inBlock = 0
      hash ^= hash >>> 15
      hashes.push(hash >>> 0)
      if (hashes.length === PREFIX_BLOCKS_MAX) return hashes
    }
  }
  return hashes
}

/** The headers that a rule names, each cut to the length that a rule can compare. */
function flagsOf({ headers }: Asked, { flagHeaders = [] }: RequestRules): Record<string, string> | undefined {
  if (flagHeaders.length === 0) return undefined
  const named = flagHeaders.flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value.slice(0, FLAG_CHARACTERS_MAX)]] : []
  })
  return named.length === 0 ? undefined : Object.fromEntries(named)
}

const FLAG_CHARACTERS_MAX = 256

function outputBound(body: ChatBody | CompletionBody): number | undefined {
  const bound = ('max_completion_tokens' in body ? body.max_completion_tokens : undefined) ?? body.max_tokens
  return bound ?? undefined
}

function unsupportedFeature(body: ChatBody | CompletionBody, known: KnownModel): Read | undefined {
  const { features, model } = known
  const refuse = (param: string, what: string): Read =>
    fault(`Invalid '${param}': ${what} not supported by the model '${model.name}'.`, param, 'unsupported-parameter')
  if (!features.logprobs && (body.logprobs === true || typeof body.logprobs === 'number'))
    return refuse('logprobs', 'log probabilities are')
  if (!('messages' in body)) {
    // Each of the best is generated and only `n` are counted, so an engine would work for nothing.
    const isWasted = (body.best_of ?? 1) > (body.n ?? 1) && features.bestOf !== true
    return isWasted ? refuse('best_of', 'more answers than `n` are') : undefined
  }
  if (!features.logprobs && (body.top_logprobs ?? 0) > 0) return refuse('top_logprobs', 'log probabilities are')
  const forcesTool = body.tool_choice === 'required' || typeof body.tool_choice === 'object'
  if (!features.tools && forcesTool && body.tool_choice !== null) return refuse('tool_choice', 'forced tool calls are')
  if (!features.jsonSchema && body.response_format?.type === 'json_schema')
    return refuse('response_format', 'JSON schemas are')
  return undefined
}

/** The corpus and the query of a retrieval: the query is the user's last message. */
function readRetrieval(
  { body, headers, found }: Asked,
  texts: readonly SegmentText[],
  { passagesDefault, passagesMax }: RequestRules,
): RetrievalWish | undefined {
  const ours = body.spillway?.retrieval ?? undefined
  const named = headerText(headers['x-spillway-corpus'])
  // A name in a header goes into the journal as one in the body does, when there is no such corpus.
  const corpus =
    ours?.corpus ?? (named === undefined || found === undefined ? named : (found.rewriter.rewrite(named) ?? ''))
  if (corpus === undefined || corpus === '') return undefined
  const wanted = ours?.top_k ?? positiveHeader(headers['x-spillway-top-k']) ?? passagesDefault
  const query = texts.findLast((segment) => segment.role === 'user')?.text ?? ''
  return { corpus, query, passagesMax: Math.min(Math.ceil(wanted), passagesMax) }
}
