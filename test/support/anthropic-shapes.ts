import { Ajv, type ValidateFunction } from 'ajv'
import { expect } from 'vitest'

/**
 * Shapes of Anthropic's Messages as far as clients rely on them: a message, every kind of event, errors, models. What
 * must be there, and what type it has. Members of ours stand in `spillway`; no other unknown member is allowed.
 */
const text = { type: 'string', minLength: 1 }
const count = { type: 'integer', minimum: 0 }
const spillway = { type: 'object' }

const object = (properties: Record<string, object>, optional: Record<string, object> = {}) => ({
  type: 'object',
  required: Object.keys(properties),
  properties: { ...properties, ...optional, spillway },
  additionalProperties: false,
})

const usage = object(
  {
    input_tokens: count,
    cache_creation_input_tokens: count,
    cache_read_input_tokens: count,
    output_tokens: count,
  },
  { output_tokens_details: object({ thinking_tokens: count }) },
)

const textBlock = object({ type: { const: 'text' }, text: { type: 'string' } })
const thinkingBlock = object({
  type: { const: 'thinking' },
  thinking: { type: 'string' },
  signature: { type: 'string' },
})
const toolUseBlock = object({ type: { const: 'tool_use' }, id: text, name: text, input: { type: 'object' } })
const block = { oneOf: [textBlock, thinkingBlock, toolUseBlock] }

const stopReason = { enum: ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal'] }
const orNull = (schema: object) => ({ anyOf: [schema, { type: 'null' }] })

const stopDetails = orNull(object({ type: { const: 'refusal' }, category: {}, explanation: {} }))

const messageOf = (content: object, reason: object) =>
  object({
    id: { type: 'string', pattern: '^msg_' },
    type: { const: 'message' },
    role: { const: 'assistant' },
    model: text,
    content,
    stop_reason: reason,
    stop_sequence: orNull({ type: 'string' }),
    stop_details: stopDetails,
    usage,
  })

const delta = {
  oneOf: [
    object({ type: { const: 'text_delta' }, text }),
    object({ type: { const: 'thinking_delta' }, thinking: text }),
    object({ type: { const: 'signature_delta' }, signature: text }),
    object({ type: { const: 'input_json_delta' }, partial_json: { type: 'string' } }),
  ],
}

const errorType = {
  enum: [
    'invalid_request_error',
    'authentication_error',
    'permission_error',
    'not_found_error',
    'request_too_large',
    'rate_limit_error',
    'api_error',
    'timeout_error',
    'overloaded_error',
  ],
}

const error = object({
  type: { const: 'error' },
  error: object({ type: errorType, message: text }),
  request_id: { type: 'string', pattern: '^req_' },
})

const model = object({
  type: { const: 'model' },
  id: text,
  display_name: text,
  created_at: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT.*Z$' },
})

const SCHEMAS = {
  message: messageOf({ type: 'array', items: block }, stopReason),
  error,
  model,
  models: object({
    data: { type: 'array', items: model },
    has_more: { type: 'boolean' },
    first_id: orNull(text),
    last_id: orNull(text),
  }),
  tokens: object({ input_tokens: { type: 'integer', minimum: 1 } }),
  'event message_start': object({
    type: { const: 'message_start' },
    message: messageOf({ type: 'array', maxItems: 0 }, { type: 'null' }),
  }),
  'event content_block_start': object({
    type: { const: 'content_block_start' },
    index: count,
    content_block: block,
  }),
  'event content_block_delta': object({ type: { const: 'content_block_delta' }, index: count, delta }),
  'event content_block_stop': object({ type: { const: 'content_block_stop' }, index: count }),
  'event message_delta': object({
    type: { const: 'message_delta' },
    delta: object({ stop_reason: stopReason, stop_sequence: orNull({ type: 'string' }), stop_details: stopDetails }),
    usage,
  }),
  'event message_stop': object({ type: { const: 'message_stop' } }),
  'event ping': object({ type: { const: 'ping' } }),
  'event error': error,
}

export type AnthropicShape = keyof typeof SCHEMAS

const ajv = new Ajv({ allowUnionTypes: true })
const validators = new Map<AnthropicShape, ValidateFunction>()

/** The same value, known to have this shape. */
export function anthropicChecked<T>(shape: AnthropicShape, value: T): T {
  let validate = validators.get(shape)
  if (validate === undefined) {
    validate = ajv.compile(SCHEMAS[shape])
    validators.set(shape, validate)
  }
  const isValid = validate(value)
  expect(isValid ? [] : validate.errors, `${shape}: ${JSON.stringify(value)}`).toEqual([])
  return value
}

export interface StreamedEvent {
  readonly name: string
  readonly data: Record<string, unknown>
}

/** The events of a stream, each of its shape and named twice alike. */
export function eventsOf(stream: string): StreamedEvent[] {
  return stream
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => {
      const found = /^event: (\w+)\ndata: (.*)$/s.exec(frame)
      if (found === null) throw new Error(`no event: ${frame}`)
      const [, name = '', json = ''] = found
      const data = JSON.parse(json) as Record<string, unknown>
      expect(data['type']).toBe(name)
      if (name !== 'spillway') anthropicChecked(`event ${name}` as AnthropicShape, data)
      return { name, data }
    })
}
