import { Ajv, type ValidateFunction } from 'ajv'
import { expect } from 'vitest'

/**
 * The Responses API's shapes as far as clients rely on them, from OpenAI's own description of it: the response object, its
 * items and parts, and every event that we send. Objects are closed: a field that OpenAI does not have is a mistake, but
 * for `spillway`.
 */
const text = { type: 'string' }
const name = { type: 'string', minLength: 1 }
const count = { type: 'integer', minimum: 0 }
const status = { enum: ['in_progress', 'completed', 'incomplete'] }
const orNull = (schema: object) => ({ anyOf: [schema, { type: 'null' }] })

/** Every property is required, unless it is listed as `more`. */
const closed = (properties: Record<string, object>, more: Record<string, object> = {}) => ({
  type: 'object',
  required: Object.keys(properties),
  properties: { ...properties, ...more },
  additionalProperties: false,
})

const logprob = {
  type: 'object',
  required: ['token', 'logprob', 'bytes', 'top_logprobs'],
  properties: { token: text, logprob: { type: 'number' }, bytes: { type: 'array' }, top_logprobs: { type: 'array' } },
}
const logprobs = { type: 'array', items: logprob }

const outputText = closed({ type: { const: 'output_text' }, text, annotations: { type: 'array' }, logprobs })
const refusal = closed({ type: { const: 'refusal' }, refusal: text })
const reasoningText = closed({ type: { const: 'reasoning_text' }, text })
const summaryText = closed({ type: { const: 'summary_text' }, text })

const message = closed({
  id: name,
  type: { const: 'message' },
  role: { const: 'assistant' },
  status,
  content: { type: 'array', items: { anyOf: [outputText, refusal] } },
})
const functionCall = closed({
  id: name,
  type: { const: 'function_call' },
  status,
  call_id: name,
  name: text,
  arguments: text,
})
const customCall = closed({
  id: name,
  type: { const: 'custom_tool_call' },
  status,
  call_id: name,
  name: text,
  input: text,
})
const reasoning = closed(
  {
    id: name,
    type: { const: 'reasoning' },
    status,
    summary: { type: 'array', items: summaryText },
    encrypted_content: orNull(name),
  },
  { content: { type: 'array', items: reasoningText } },
)
const item = { anyOf: [message, functionCall, customCall, reasoning] }

const usage = closed({
  input_tokens: count,
  input_tokens_details: closed({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: closed({ reasoning_tokens: count }),
  total_tokens: count,
})

const ERROR_CODES = ['server_error', 'rate_limit_exceeded', 'invalid_prompt']

const whole = closed(
  {
    id: { type: 'string', pattern: '^resp_' },
    object: { const: 'response' },
    created_at: { type: 'integer', minimum: 1_500_000_000 },
    status: { type: 'string' },
    background: { type: 'boolean' },
    error: orNull(closed({ code: { enum: ERROR_CODES }, message: name })),
    incomplete_details: orNull(closed({ reason: { enum: ['max_output_tokens', 'content_filter'] } })),
    instructions: orNull(text),
    max_output_tokens: orNull(count),
    max_tool_calls: orNull(count),
    model: name,
    output: { type: 'array', items: item },
    parallel_tool_calls: { type: 'boolean' },
    previous_response_id: orNull(name),
    prompt_cache_key: orNull(text),
    reasoning: closed({ effort: orNull(text), summary: orNull({ enum: ['auto', 'concise', 'detailed'] }) }),
    safety_identifier: orNull(text),
    service_tier: name,
    store: { type: 'boolean' },
    temperature: { type: 'number' },
    text: { type: 'object', required: ['format', 'verbosity'] },
    tool_choice: { anyOf: [{ enum: ['none', 'auto', 'required'] }, { type: 'object', required: ['type'] }] },
    tools: { type: 'array', items: { type: 'object', required: ['type'] } },
    top_logprobs: count,
    top_p: { type: 'number' },
    truncation: { enum: ['auto', 'disabled'] },
    metadata: { type: 'object', additionalProperties: text },
  },
  { usage, user: text, spillway: { type: 'object' } },
)

/** Only what runs in the background can be queued or cancelled. */
const FOREGROUND = ['completed', 'failed', 'in_progress', 'incomplete']
const tied = (background: boolean, statuses: readonly string[]) => ({
  properties: { background: { const: background }, status: { enum: statuses } },
})
const response = {
  allOf: [whole, { anyOf: [tied(false, FOREGROUND), tied(true, [...FOREGROUND, 'queued', 'cancelled'])] }],
}

const inItem = { item_id: name, output_index: count }
const inPart = { ...inItem, content_index: count }
const inSummary = { ...inItem, summary_index: count }
const part = { anyOf: [outputText, refusal, reasoningText] }
const event = (type: string, properties: Record<string, object>) =>
  closed({ type: { const: type }, sequence_number: count, ...properties })
const ended = (type: string, was: string) =>
  event(type, { response: { allOf: [response, { properties: { status: { const: was } } }] } })

const toldError = { code: orNull(text), message: name, param: orNull(text) }

const EVENTS: Readonly<Record<string, object>> = {
  'response.created': ended('response.created', 'in_progress'),
  'response.in_progress': ended('response.in_progress', 'in_progress'),
  'response.completed': ended('response.completed', 'completed'),
  'response.incomplete': ended('response.incomplete', 'incomplete'),
  'response.failed': ended('response.failed', 'failed'),
  'response.output_item.added': event('response.output_item.added', { output_index: count, item }),
  'response.output_item.done': event('response.output_item.done', { output_index: count, item }),
  'response.content_part.added': event('response.content_part.added', { ...inPart, part }),
  'response.content_part.done': event('response.content_part.done', { ...inPart, part }),
  'response.output_text.delta': event('response.output_text.delta', { ...inPart, delta: name, logprobs }),
  'response.output_text.done': event('response.output_text.done', { ...inPart, text, logprobs }),
  'response.refusal.delta': event('response.refusal.delta', { ...inPart, delta: name }),
  'response.refusal.done': event('response.refusal.done', { ...inPart, refusal: name }),
  'response.reasoning_text.delta': event('response.reasoning_text.delta', { ...inPart, delta: name }),
  'response.reasoning_text.done': event('response.reasoning_text.done', { ...inPart, text: name }),
  'response.reasoning_summary_part.added': event('response.reasoning_summary_part.added', {
    ...inSummary,
    part: summaryText,
  }),
  'response.reasoning_summary_part.done': event('response.reasoning_summary_part.done', {
    ...inSummary,
    part: summaryText,
  }),
  'response.reasoning_summary_text.delta': event('response.reasoning_summary_text.delta', {
    ...inSummary,
    delta: name,
  }),
  'response.reasoning_summary_text.done': event('response.reasoning_summary_text.done', { ...inSummary, text: name }),
  'response.function_call_arguments.delta': event('response.function_call_arguments.delta', { ...inItem, delta: name }),
  'response.function_call_arguments.done': event('response.function_call_arguments.done', {
    ...inItem,
    name: text,
    arguments: text,
  }),
  'response.custom_tool_call_input.delta': event('response.custom_tool_call_input.delta', { ...inItem, delta: name }),
  'response.custom_tool_call_input.done': event('response.custom_tool_call_input.done', { ...inItem, input: text }),
  error: event('error', { ...toldError, error: closed({ type: name, ...toldError }) }),
}

const ajv = new Ajv({ allowUnionTypes: true, strictTypes: false, strictRequired: false })
const validators = new Map<string, ValidateFunction>()

function check(shape: string, schema: object, value: unknown): void {
  let validate = validators.get(shape)
  if (validate === undefined) {
    validate = ajv.compile(schema)
    validators.set(shape, validate)
  }
  const isValid = validate(value)
  expect(isValid ? [] : validate.errors, `${shape}: ${JSON.stringify(value)}`).toEqual([])
}

export interface ToldPart {
  type: string
  text?: string
  refusal?: string
  logprobs?: unknown[]
}

export interface ToldItem {
  id: string
  type: string
  status: string
  content?: ToldPart[]
  summary?: ToldPart[]
  encrypted_content?: string | null
  call_id?: string
  name?: string
  arguments?: string
  input?: string
}

export interface ToldResponse {
  id: string
  status: string
  output: ToldItem[]
  store: boolean
  model: string
  error: { code: string; message: string } | null
  incomplete_details: { reason: string } | null
  previous_response_id: string | null
  usage: { input_tokens: number; output_tokens: number; total_tokens: number } | null
  spillway?: Record<string, unknown>
}

export interface ToldEvent {
  type: string
  sequence_number: number
  output_index: number
  content_index?: number
  summary_index?: number
  item_id?: string
  delta?: string
  item?: ToldItem
  part?: ToldPart
  response?: ToldResponse
}

/** The same value, known to be a response. */
export function checkedResponse(value: unknown): ToldResponse {
  check('response', response, value)
  return value as ToldResponse
}

/** The events of a stream: each named twice alike, each in its shape, numbered without a gap. */
export function readEvents(stream: string): ToldEvent[] {
  const frames = stream.split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'))
  return frames.map((frame, nth) => {
    const found = /^event: (\S+)\ndata: (.*)$/s.exec(frame)
    if (found === null) throw new Error(`not an event: ${frame}`)
    const told = JSON.parse(found[2] as string) as ToldEvent
    expect(told.type).toBe(found[1])
    expect(told.sequence_number).toBe(nth)
    const schema = EVENTS[told.type]
    if (schema === undefined) throw new Error(`no such event: ${told.type}`)
    check(told.type, schema, told)
    return told
  })
}

/** What a client that knows only deltas has at the end: items from what was added and grew, not from what was done. */
export function accumulated(events: readonly ToldEvent[]): ToldItem[] {
  const items: ToldItem[] = []
  for (const told of events) {
    const at = items[told.output_index]
    const { type, delta = '' } = told
    if (type === 'response.output_item.added') {
      expect(told.output_index).toBe(items.length)
      items.push(structuredClone(told.item as ToldItem))
    } else if (at === undefined || told.item_id === undefined) continue
    else {
      expect(told.item_id).toBe(at.id)
      const texts = told.summary_index === undefined ? at.content : at.summary
      const place = texts?.[told.summary_index ?? told.content_index ?? 0]
      if (type.endsWith('part.added')) (texts as unknown[]).push(structuredClone(told.part))
      else if (type === 'response.refusal.delta' && place !== undefined) place.refusal += delta
      else if (type.endsWith('text.delta') && place !== undefined) {
        place.text += delta
        place.logprobs?.push(...((told as unknown as { logprobs: unknown[] }).logprobs ?? []))
      } else if (type === 'response.function_call_arguments.delta') at.arguments += delta
      else if (type === 'response.custom_tool_call_input.delta') at.input += delta
    }
  }
  return items
}
