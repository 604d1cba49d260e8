import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import { readResponsesUsage } from './native-usage.ts'
import type { UpstreamAnswer } from './upstream.ts'

/**
 * What an engine that speaks Responses itself says, as deltas: for the counting of tokens, first tokens, finish reasons
 * and the journal. The client gets the engine's own events.
 */
type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Deltas that are text of a call, of our functions or of tools that the engine runs. */
const OF_CALLS: ReadonlySet<string> = new Set([
  'response.function_call_arguments.delta',
  'response.custom_tool_call_input.delta',
  'response.mcp_call_arguments.delta',
  'response.code_interpreter_call_code.delta',
])
const OF_REASONING: ReadonlySet<string> = new Set([
  'response.reasoning_text.delta',
  'response.reasoning_summary_text.delta',
])
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete'])

export function readNativeResponse(json: unknown): UpstreamAnswer {
  const event = isObject(json) ? json : {}
  if (event['object'] === 'response') return readDocument(event)
  const type = textOf(event['type'])
  if (type === 'error') return failed(isObject(event['error']) ? event['error'] : event)
  const response = isObject(event['response']) ? event['response'] : {}
  if (type === 'response.failed') return failed(response['error'])
  if (event['error'] !== undefined && event['error'] !== null) return failed(event['error'])
  if (ENDS.has(type)) return said([{ index: 0, content: '', finishReason: endOf(response) }], usageOf(response))
  const delta = textOf(event['delta'])
  if (delta === '') return said([])
  if (type === 'response.output_text.delta') return said([{ index: 0, content: delta, finishReason: null }])
  const extra = extraOf(type, delta, event['output_index'])
  return said(extra === undefined ? [] : [{ index: 0, content: null, finishReason: null, extra }])
}

function extraOf(type: string, delta: string, index: unknown): Json | undefined {
  if (OF_REASONING.has(type)) return { reasoning_content: delta }
  if (type === 'response.refusal.delta') return { refusal: delta }
  return OF_CALLS.has(type) ? { tool_calls: [{ index, function: { arguments: delta } }] } : undefined
}

/** An answer in one piece. One that is still under way, or has failed, is no answer. */
function readDocument(response: Json): UpstreamAnswer {
  const { status, output } = response
  if (status === 'failed' || status === 'cancelled') return failed(response['error'])
  if (status !== 'completed' && status !== 'incomplete') return said([])
  let content: string | null = null
  let reasoning = ''
  const calls: Json[] = []
  for (const item of Array.isArray(output) ? output.filter(isObject) : []) {
    if (item['type'] === 'function_call') calls.push(callOf(item, calls.length))
    else if (item['type'] === 'reasoning') reasoning += joined(item['content']) || joined(item['summary'])
    else if (item['type'] === 'message') content = (content ?? '') + joined(item['content'])
  }
  const extra = {
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const choice: ChoiceDelta = { index: 0, content, finishReason: endOf(response) }
  const usage = usageOf(response)
  return said([Object.keys(extra).length === 0 ? choice : { ...choice, extra }], usage)
}

const callOf = ({ call_id: id, name, arguments: args }: Json, index: number): Json => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: textOf(args) },
})

const joined = (parts: unknown): string =>
  Array.isArray(parts) ? parts.map((part: unknown) => (isObject(part) ? textOf(part['text']) : '')).join('') : ''

function endOf({ status, incomplete_details: details, output }: Json): string {
  if (status === 'incomplete')
    return isObject(details) && details['reason'] === 'content_filter' ? 'content_filter' : 'length'
  const isCall = (item: unknown): boolean => isObject(item) && item['type'] === 'function_call'
  return Array.isArray(output) && output.some(isCall) ? 'tool_calls' : 'stop'
}

interface Counted {
  readonly usage: Usage | undefined
  readonly reasoningTokens: number
}

function usageOf({ usage }: Json): Counted {
  const details = isObject(usage) ? usage['output_tokens_details'] : undefined
  const tokens = isObject(details) ? details['reasoning_tokens'] : undefined
  const reasoningTokens = typeof tokens === 'number' && tokens > 0 ? tokens : 0
  return { usage: readResponsesUsage(usage), reasoningTokens }
}

const said = (choices: readonly ChoiceDelta[], counted?: Counted): UpstreamAnswer => ({
  choices,
  usage: undefined,
  error: undefined,
  isRelayable: true,
  ...counted,
})

/** OpenAI's words for what went wrong, as a status. */
const STATUSES: Readonly<Record<string, number>> = {
  rate_limit_exceeded: 429,
  invalid_prompt: 400,
  context_length_exceeded: 400,
  server_error: 500,
}

const failed = (error: unknown): UpstreamAnswer => {
  const code = isObject(error) ? error['code'] : undefined
  const number = Number(code)
  const status = Number.isInteger(number) && number >= 400 && number < 600 ? number : STATUSES[textOf(code)]
  return { choices: [], usage: undefined, error: { json: { error }, status } }
}
