import type { ChoiceDelta, Result, Usage } from '../domain/delta.ts'
import { encodingOf, readVectors } from './embeddings.ts'
import { isBrokenOff, readFinishReason } from './finish-reason.ts'

/**
 * The answers of an OpenAI-compatible engine. Engines differ: some leave out usage, some send numbers as
 * error codes, some send `null` where others send nothing. Reading is tolerant here; writing is strict in `answer.ts`.
 */

interface UpstreamChoice {
  index?: number
  text?: string
  delta?: Record<string, unknown>
  message?: Record<string, unknown>
  finish_reason?: unknown
  logprobs?: unknown
  /** vLLM's and SGLang's words for the stop sequence that ended a text; a number is the id of a token. */
  stop_reason?: unknown
  matched_stop?: unknown
}

interface UpstreamUsage {
  prompt_tokens?: number
  completion_tokens?: number
  prompt_tokens_details?: { cached_tokens?: number } | null
  completion_tokens_details?: { reasoning_tokens?: number } | null
}

/** llama.cpp's own count, which it sends even where it leaves out `usage`. */
interface Timings {
  prompt_n?: unknown
  cache_n?: unknown
  predicted_n?: unknown
}

export interface UpstreamAnswer {
  readonly choices: readonly ChoiceDelta[]
  readonly usage: Usage | undefined
  readonly error: UpstreamError | undefined
  /** Result of a model that answers without streaming. */
  readonly result?: Result
  /** Tokens of this piece, if the engine reports them. */
  readonly tokens?: number
  /** Tokens of the usage that were spent on reasoning, streamed or not. */
  readonly reasoningTokens?: number
  /** The usage has no output tokens, because the engine does not count them. */
  readonly isOutputUncounted?: boolean
  /** Every choice is as OpenAI has it, so that the engine's own text can be passed on. */
  readonly isRelayable?: boolean
}

export interface UpstreamError {
  /** As the engine sent it. */
  readonly json: unknown
  /** An HTTP status that the engine put into the body: some engines stream errors under a 200. */
  readonly status: number | undefined
}

/** Reads one chunk of a stream, or a whole answer: they differ only in `delta` against `message`. */
export function readUpstream(json: unknown): UpstreamAnswer {
  const answer = (isObject(json) ? json : {}) as {
    choices?: UpstreamChoice[]
    object?: unknown
    usage?: UpstreamUsage | null
    timings?: Timings | null
    error?: unknown
  }
  // vLLM's older format of an error in a stream.
  if (answer.object === 'error') return failed(answer)
  if (answer.error !== undefined && answer.error !== null) return failed(answer.error)
  const choices = Array.isArray(answer.choices) ? answer.choices.filter(isObject).map(readChoice) : []
  if (choices.some(({ finishReason }) => isBrokenOff(finishReason))) return failed(undefined)
  const usage = readUsage(answer.usage) ?? readTimings(answer.timings)
  const reasoningTokens = usage === undefined ? 0 : countOf(answer.usage?.completion_tokens_details?.reasoning_tokens)
  const isRelayable = Array.isArray(answer.choices) && answer.choices.every(isOpenAiChoice)
  return reasoningTokens === 0
    ? { choices, usage, error: undefined, isRelayable }
    : { choices, usage, error: undefined, isRelayable, reasoningTokens }
}

/** Whether clients of OpenAI can read the choice as it is: tokens as text, and a finish reason that they know. */
function isOpenAiChoice(choice: unknown): boolean {
  if (!isObject(choice)) return false
  const { index, finish_reason: reason, delta, message, text } = choice as UpstreamChoice
  if (!Number.isInteger(index) || readFinishReason(reason) !== reason) return false
  const said = delta ?? message
  if (said === undefined) return typeof text === 'string'
  if (!isObject(said)) return false
  const { content } = said
  return content === undefined || content === null || typeof content === 'string'
}

/** Members of an answer and of its choices that are read, or are ours. */
const READ: ReadonlySet<string> = new Set(['id', 'object', 'model', 'choices', 'usage', 'error', 'spillway'])
const READ_OF_CHOICE: ReadonlySet<string> = new Set(['index', 'delta', 'message', 'text', 'finish_reason', 'logprobs'])

/** What an answer says beside what is read of it; undefined when that is nothing. */
export function besideAnswer(json: unknown): Readonly<Record<string, unknown>> | undefined {
  return isObject(json) ? membersBeside(json, READ) : undefined
}

/** The choices with what the answer says beside each of them. */
export function withBeside(choices: readonly ChoiceDelta[], json: unknown): readonly ChoiceDelta[] {
  const { choices: said } = (isObject(json) ? json : {}) as { choices?: unknown }
  if (!Array.isArray(said)) return choices
  return choices.map((choice) => {
    const own = said.find((one, position) => isObject(one) && (one['index'] ?? position) === choice.index) as unknown
    const beside = isObject(own) ? membersBeside(own, READ_OF_CHOICE) : undefined
    return beside === undefined ? choice : { ...choice, beside }
  })
}

function membersBeside(json: Readonly<Record<string, unknown>>, read: ReadonlySet<string>) {
  const beside = Object.entries(json).filter(([name]) => !read.has(name))
  return beside.length === 0 ? undefined : Object.fromEntries(beside)
}

/** A complete answer in vectors: one for each of `inputCount` inputs. */
export function readEmbeddings(json: unknown, inputCount: number): UpstreamAnswer {
  const vectors = readVectors(json)
  if (vectors?.length !== inputCount) return withoutResult(json)
  const usage = readUsage((json as { usage?: UpstreamUsage | null }).usage)
  const encoding = encodingOf(json)
  const result = { kind: 'vectors' as const, vectors, ...(encoding !== undefined && { encoding }) }
  return { choices: [], usage, error: undefined, result }
}

/** Not a result: an error at most; any text in it is ignored. */
export const withoutResult = (json: unknown): UpstreamAnswer => ({ ...readUpstream(json), choices: [] })

const failed = (error: unknown): UpstreamAnswer => ({
  choices: [],
  usage: undefined,
  error: { json: error, status: errorStatus(error) },
})

function readChoice(choice: UpstreamChoice, position: number): ChoiceDelta {
  const read = readSaid(choice, position)
  const stopSequence = textOf(choice.stop_reason) ?? textOf(choice.matched_stop)
  return stopSequence === undefined ? read : { ...read, stopSequence }
}

function readSaid(choice: UpstreamChoice, position: number): ChoiceDelta {
  const said = choice.delta ?? choice.message
  const index = choice.index ?? position
  const finishReason = readFinishReason(choice.finish_reason)
  const logprobs = choice.logprobs ?? undefined
  if (!isObject(said)) return { index, content: textOf(choice.text) ?? '', finishReason, logprobs }
  const content = contentOf(said['content'])
  let extra: Record<string, unknown> | undefined
  for (const key in said) {
    // The role is sent by us, and a null refusal is ignored.
    if (key === 'content' || key === 'role' || said[key] === null) continue
    extra ??= {}
    extra[key] = said[key]
  }
  return extra === undefined
    ? { index, content, finishReason, logprobs }
    : { index, content, finishReason, logprobs, extra }
}

/** Text, or a list of parts, which some clients send. */
function contentOf(content: unknown): string | null {
  if (!Array.isArray(content)) return textOf(content) ?? null
  return content.map((part: unknown) => (isObject(part) ? (textOf(part['text']) ?? '') : '')).join('')
}

function readTimings(timings: Timings | null | undefined): Usage | undefined {
  if (!isObject(timings)) return undefined
  const { prompt_n, cache_n, predicted_n } = timings as Timings
  if (typeof prompt_n !== 'number' || typeof predicted_n !== 'number') return undefined
  const cachedTokens = countOf(cache_n)
  return { promptTokens: countOf(prompt_n) + cachedTokens, cachedTokens, outputTokens: countOf(predicted_n) }
}

function readUsage(usage: UpstreamUsage | null | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = usage as UpstreamUsage
  return {
    promptTokens: countOf(prompt_tokens),
    cachedTokens: countOf(prompt_tokens_details?.cached_tokens),
    outputTokens: countOf(completion_tokens),
  }
}

/** `{"error": {"message": …}}`, `{"error": "…"}`, vLLM's older `{"object": "error", "message": …}`, FastAPI's `detail`. */
export function errorMessage(error: unknown): string | undefined {
  if (typeof error === 'string') return error
  if (!isObject(error)) return undefined
  const { message, error: inner, detail } = error as { message?: unknown; error?: unknown; detail?: unknown }
  return textOf(message) ?? (inner === undefined ? textOf(detail) : errorMessage(inner))
}

/**
 * Whether the engine says that the prompt is longer than its context: by OpenAI's code, llama.cpp's type, or in the words
 * of vLLM ("maximum context length", "maximum model length") and SGLang ("longer than the model's context length",
 * "exceeds the maximum allowed length").
 */
export function isContextError(error: unknown): boolean {
  if (isObject(error)) {
    if (error['code'] === 'context_length_exceeded' || error['type'] === 'exceed_context_size_error') return true
    if (isObject(error['error'])) return isContextError(error['error'])
  }
  return /\b(?:context (?:length|size|window)|maximum (?:model|allowed) length)\b/i.test(errorMessage(error) ?? '')
}

/** The word for the kind of error: OpenAI's `code`, or its `type` where the code is null. */
export function errorCode(error: unknown): string | undefined {
  if (!isObject(error)) return undefined
  const { code, type, error: inner } = error as { code?: unknown; type?: unknown; error?: unknown }
  return inner === undefined ? (textOf(code) ?? textOf(type)) : errorCode(inner)
}

/** `code` is a number in vLLM's and llama.cpp's errors, a number in a string in Azure's, a word in OpenAI's. */
function errorStatus(error: unknown): number | undefined {
  if (!isObject(error)) return undefined
  return [error['code'], error['status'], error['http_status']]
    .map(Number)
    .find((number) => Number.isInteger(number) && number >= 400 && number < 600)
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
/** Tokens beyond which a count cannot be true: a tenant would owe it for ever, and sums of its square have no end. */
const COUNT_MAX = 1e9

const countOf = (value: unknown): number =>
  typeof value === 'number' && value > 0 && value <= COUNT_MAX ? Math.round(value) : 0
