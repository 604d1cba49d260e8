import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import { withPassages } from './passage-text.ts'

/**
 * What we say to an OpenAI-compatible engine, and what we understand of its answers. Engines differ: some leave out
 * usage, some send numbers as error codes, some send `null` where others send nothing. We are tolerant here, and
 * strict in `answer.ts`.
 */

/** The client's body as the plan has it: fewer messages, a shorter answer, the engine's own name for the model. */
export function upstreamBody(request: Request, plan: Plan, upstreamModel: string): string {
  const { spillway: _ours, priority: _theirs, service_tier: _tier, ...body } = request.text?.body ?? {}
  const out: Record<string, unknown> = { ...body, model: upstreamModel }
  const messages = body['messages']
  if (Array.isArray(messages) && plan.keptSegments.length < messages.length) {
    out['messages'] = plan.keptSegments.map((index) => messages[index])
  }
  const { passages } = plan
  if (Array.isArray(messages) && passages !== undefined && passages.length > 0) {
    out['messages'] = withPassages(out['messages'] as Array<{ role: string }>, passages)
  }
  const bound = body['max_completion_tokens'] === undefined ? 'max_tokens' : 'max_completion_tokens'
  if (typeof out[bound] !== 'number' || out[bound] > plan.outputTokensMax) out[bound] = plan.outputTokensMax
  if (request.isStreamed) out['stream_options'] = { include_usage: true }
  return JSON.stringify(out)
}

interface UpstreamChoice {
  index?: number
  text?: string
  delta?: Record<string, unknown>
  message?: Record<string, unknown>
  finish_reason?: string | null
  logprobs?: unknown
}

interface UpstreamUsage {
  prompt_tokens?: number
  completion_tokens?: number
  prompt_tokens_details?: { cached_tokens?: number } | null
}

export interface UpstreamAnswer {
  readonly choices: readonly ChoiceDelta[]
  readonly usage: Usage | undefined
  readonly error: string | undefined
}

/** Reads one chunk of a stream, or a whole answer: they differ only in `delta` against `message`. */
export function readUpstream(json: unknown): UpstreamAnswer {
  const answer = (isObject(json) ? json : {}) as {
    choices?: UpstreamChoice[]
    usage?: UpstreamUsage | null
    error?: unknown
  }
  if (answer.error !== undefined && answer.error !== null) {
    return { choices: [], usage: undefined, error: errorMessage(answer.error) ?? 'no reason given' }
  }
  const choices = Array.isArray(answer.choices) ? answer.choices.filter(isObject).map(readChoice) : []
  return { choices, usage: readUsage(answer.usage), error: undefined }
}

function readChoice(choice: UpstreamChoice, position: number): ChoiceDelta {
  const said = choice.delta ?? choice.message
  const index = choice.index ?? position
  const finishReason = choice.finish_reason ?? null
  const logprobs = choice.logprobs ?? undefined
  if (!isObject(said)) return { index, content: textOf(choice.text) ?? '', finishReason, logprobs }
  const content = textOf(said['content']) ?? null
  let extra: Record<string, unknown> | undefined
  for (const key in said) {
    // The role is ours to send, and a null refusal says nothing.
    if (key === 'content' || key === 'role' || said[key] === null) continue
    extra ??= {}
    extra[key] = said[key]
  }
  return extra === undefined
    ? { index, content, finishReason, logprobs }
    : { index, content, finishReason, logprobs, extra }
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

/** `{"error": {"message": …}}`, `{"error": "…"}`, and vLLM's older `{"object": "error", "message": …}`. */
export function errorMessage(error: unknown): string | undefined {
  if (typeof error === 'string') return error
  if (!isObject(error)) return undefined
  const { message, error: inner } = error as { message?: unknown; error?: unknown }
  return textOf(message) ?? (inner === undefined ? undefined : errorMessage(inner))
}

/** The parameter that the engine complains about, if it names one. */
export function errorParam(error: unknown): string | undefined {
  if (!isObject(error)) return undefined
  const { param, error: inner } = error as { param?: unknown; error?: unknown }
  return textOf(param) ?? (inner === undefined ? undefined : errorParam(inner))
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const countOf = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.round(value) : 0
