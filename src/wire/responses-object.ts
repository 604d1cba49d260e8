import type { Usage } from '../domain/delta.ts'
import type { AnswerIdentity, QueuedResponse } from './dialect.ts'
import type { ResponsesBody } from './responses-schema.ts'
import { pricedText, toldDetails } from './usage-text.ts'

/**
 * The response object: what was asked, what was answered, how it ended. A stream has it three times (created, in progress,
 * ended), so what does not change between them is written once. It says what is true: `store` and `truncation` are as
 * they were done, not as they were asked for.
 */
export interface ResponseState {
  readonly status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed'
  /** The output items in JSON, with commas between them. */
  readonly output: string
  readonly usage?: Usage
  readonly incompleteReason?: 'max_output_tokens' | 'content_filter'
  readonly error?: { readonly code: string; readonly message: string }
  /** Fields of ours. */
  readonly ours?: Readonly<Record<string, unknown>> | undefined
}

/** What a response goes on from, and what becomes of it. */
export interface ResponseTerms {
  /** The items of the conversation that `previous_response_id` names; undefined where it is not known. */
  readonly earlier?: readonly object[] | undefined
  readonly isStored: boolean
  /** The body as the client wrote it, where nothing of it had to be looked up. */
  readonly raw?: string
  /** Takes the response when it has ended by itself: never one that broke off. */
  readonly keep?: (identity: AnswerIdentity, document: string) => void
  /** It may run in the background, or does so now. */
  readonly isBackground?: boolean
  /** Where it is to be put in the background: takes the response as it is queued. */
  readonly queue?: (identity: AnswerIdentity, document: string) => QueuedResponse
  /** Headers that tell of it. */
  readonly headers?: readonly string[]
}

export class ResponseObject {
  readonly #isBackground: boolean
  readonly #head: string
  readonly #beforeOutput: string
  readonly #afterOutput: string

  constructor(body: ResponsesBody, { id, createdAtS, model }: AnswerIdentity, { isStored }: ResponseTerms) {
    this.#isBackground = body.background === true
    this.#head = `{"id":${JSON.stringify(id)},"object":"response","created_at":${createdAtS},"status":"`
    this.#beforeOutput =
      `,"instructions":${orNull(body.instructions)},"max_output_tokens":${orNull(body.max_output_tokens)},` +
      `"max_tool_calls":${orNull(body.max_tool_calls)},"model":${JSON.stringify(model)},"output":[`
    this.#afterOutput =
      `],"parallel_tool_calls":${body.parallel_tool_calls !== false},` +
      `"previous_response_id":${orNull(body.previous_response_id)},` +
      `"prompt_cache_key":${orNull(body.prompt_cache_key)},` +
      `"reasoning":${JSON.stringify({ effort: body.reasoning?.effort ?? null, summary: summaryOf(body) ?? null })},` +
      `"safety_identifier":${orNull(body.safety_identifier)},"service_tier":${JSON.stringify(body.service_tier ?? 'auto')},` +
      `"store":${isStored},"temperature":${body.temperature ?? 1},"text":${textOf(body)},` +
      `"tool_choice":${JSON.stringify(body.tool_choice ?? 'auto')},"tools":${toolsOf(body)},` +
      `"top_logprobs":${body.top_logprobs ?? 0},"top_p":${body.top_p ?? 1},"truncation":"disabled",` +
      `${typeof body.user === 'string' ? `"user":${JSON.stringify(body.user)},` : ''}"metadata":${JSON.stringify(body.metadata ?? {})}`
  }

  write({ status, output, usage, incompleteReason, error, ours }: ResponseState): string {
    return (
      `${this.#head}${status}","background":${this.#isBackground},"error":${orNull(error)},` +
      `"incomplete_details":${incompleteReason === undefined ? 'null' : `{"reason":"${incompleteReason}"}`}` +
      `${this.#beforeOutput}${output}${this.#afterOutput}${usage === undefined ? '' : `,"usage":${usageOf(usage)}`}` +
      `${ours === undefined ? '' : `,"spillway":${JSON.stringify(ours)}`}}`
    )
  }
}

const orNull = (value: unknown): string => (value === undefined || value === null ? 'null' : JSON.stringify(value))

/** The client wants to see the reasoning as a summary: the only form that some clients show. */
export const summaryOf = ({ reasoning }: ResponsesBody): string | undefined =>
  reasoning?.summary ?? reasoning?.generate_summary ?? undefined

function textOf({ text }: ResponsesBody): string {
  if (text === undefined || text === null) return '{"format":{"type":"text"},"verbosity":"medium"}'
  const { format, verbosity, ...more } = text
  return JSON.stringify({ ...more, format: format ?? { type: 'text' }, verbosity: verbosity ?? 'medium' })
}

/** OpenAI's description wants both keys in every function. */
function toolsOf({ tools }: ResponsesBody): string {
  if (tools === undefined || tools === null || tools.length === 0) return '[]'
  return JSON.stringify(tools.map(withBothKeys))
}

function withBothKeys(tool: { readonly type: string }): object {
  if (tool.type !== 'function') return tool
  const { parameters, strict } = tool as { parameters?: unknown; strict?: unknown }
  return parameters !== undefined && strict !== undefined
    ? tool
    : { ...tool, parameters: parameters ?? null, strict: strict ?? null }
}

/** In Responses' words, with the details that the engine told. */
function usageOf(usage: Usage): string {
  const { promptTokens, cachedTokens, outputTokens } = usage
  const { prompt_tokens_details: prompt, completion_tokens_details: output } = usage.told ? toldDetails(usage) : NONE
  const text =
    `{"input_tokens":${promptTokens},"input_tokens_details":{"cached_tokens":${cachedTokens},` +
    `"cache_write_tokens":${countOf(prompt, 'cache_write_tokens')}},"output_tokens":${outputTokens},` +
    `"output_tokens_details":{"reasoning_tokens":${countOf(output, 'reasoning_tokens')}},` +
    `"total_tokens":${promptTokens + outputTokens}}`
  return pricedText(text, usage)
}

const NONE: Readonly<Record<string, unknown>> = {}

/** A count that an engine told; 0 for whatever else stands there. */
function countOf(details: unknown, name: string): number {
  const count = (details as Readonly<Record<string, unknown>> | null | undefined)?.[name]
  return Number.isSafeInteger(count) && (count as number) > 0 ? (count as number) : 0
}
