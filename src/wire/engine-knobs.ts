import type { ChatBody, CompletionBody } from './schemas.ts'

/** Options of a body about the end of its answer: OpenAI's, and vLLM's, which load generators rely on. */
export interface EngineKnobs {
  readonly stops: readonly string[]
  /** vLLM's `include_stop_str_in_output`. */
  readonly includesStop: boolean
  /** vLLM's `min_tokens`: no end and no stop sequence before this many tokens. */
  readonly minTokens: number
  /** vLLM's `ignore_eos`: the answer goes on until `max_tokens`; benchmarks get answers of a known length this way. */
  readonly ignoresEnd: boolean
  readonly isJson: boolean
}

export function readEngineKnobs(body: ChatBody | CompletionBody): EngineKnobs {
  const more = body as Readonly<Record<string, unknown>>
  const stop = body.stop ?? []
  const minTokens = more['min_tokens']
  return {
    stops: (typeof stop === 'string' ? [stop] : stop).filter((one) => one !== ''),
    includesStop: more['include_stop_str_in_output'] === true,
    minTokens: typeof minTokens === 'number' && minTokens > 0 ? Math.floor(minTokens) : 0,
    ignoresEnd: more['ignore_eos'] === true,
    isJson: 'messages' in body && body.response_format?.type === 'json_object',
  }
}

/** vLLM's ways to ask for an answer of a given form, older and newer. */
const GUIDED = ['guided_json', 'guided_regex', 'guided_choice', 'guided_grammar', 'structured_outputs'] as const

/**
 * Whether an answer that is cut off is worth nothing: a tool call or a JSON document without its end cannot be read, a
 * text without its end can.
 */
export function mustEndWhole(body: ChatBody | CompletionBody): boolean {
  const more = body as Readonly<Record<string, unknown>>
  if (GUIDED.some((name) => more[name] !== undefined && more[name] !== null)) return true
  if (!('messages' in body)) return false
  const { tools, response_format: format } = body
  return (tools?.length ?? 0) > 0 || (format !== undefined && format !== null && format.type !== 'text')
}
