import { Ajv, type ValidateFunction } from 'ajv'
import { expect } from 'vitest'

/**
 * OpenAI's answer shapes as far as clients rely on them: what must be there, and what type it has. `checked` fails
 * with ajv's own words.
 */
const text = { type: 'string', minLength: 1 }
const count = { type: 'integer', minimum: 0 }
const orNull = (schema: { type: string }) => ({ ...schema, type: [schema.type, 'null'] })

const usage = {
  type: 'object',
  required: ['prompt_tokens', 'completion_tokens', 'total_tokens'],
  properties: {
    prompt_tokens: { type: 'integer', minimum: 1 },
    completion_tokens: count,
    total_tokens: count,
    prompt_tokens_details: { type: 'object', required: ['cached_tokens'], properties: { cached_tokens: count } },
  },
}

const finishReason = { enum: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'] }

const document = (object: string, choice: object, more: object = {}) => ({
  type: 'object',
  required: ['id', 'object', 'created', 'model', 'choices'],
  properties: {
    id: text,
    object: { const: object },
    created: { type: 'integer', minimum: 1_500_000_000 },
    model: text,
    system_fingerprint: orNull({ type: 'string' }),
    choices: { type: 'array', items: choice },
    ...more,
  },
})

const chatChoice = {
  type: 'object',
  required: ['index', 'message', 'logprobs', 'finish_reason'],
  properties: {
    index: count,
    message: {
      type: 'object',
      required: ['role', 'content', 'refusal'],
      properties: {
        role: { const: 'assistant' },
        content: orNull({ type: 'string' }),
        refusal: orNull({ type: 'string' }),
      },
    },
    logprobs: orNull({ type: 'object' }),
    finish_reason: finishReason,
  },
}

const completionChoice = (reason: object) => ({
  type: 'object',
  required: ['index', 'text', 'logprobs', 'finish_reason'],
  properties: {
    index: count,
    text: { type: 'string' },
    logprobs: orNull({ type: 'object' }),
    finish_reason: reason,
  },
})

const chunkChoice = {
  type: 'object',
  required: ['index', 'delta', 'finish_reason'],
  properties: {
    index: count,
    delta: {
      type: 'object',
      properties: { role: { const: 'assistant' }, content: orNull({ type: 'string' }) },
    },
    logprobs: orNull({ type: 'object' }),
    finish_reason: { anyOf: [finishReason, { type: 'null' }] },
  },
}

const model = {
  type: 'object',
  required: ['id', 'object', 'created', 'owned_by'],
  properties: { id: text, object: { const: 'model' }, created: count, owned_by: text },
  additionalProperties: false,
}

const SCHEMAS = {
  chat: document('chat.completion', chatChoice, { usage }),
  completion: document('text_completion', completionChoice(finishReason), { usage }),
  chatChunk: document('chat.completion.chunk', chunkChoice, { usage: { anyOf: [usage, { type: 'null' }] } }),
  completionChunk: document('text_completion', completionChoice({ anyOf: [finishReason, { type: 'null' }] }), {
    usage: { anyOf: [usage, { type: 'null' }] },
  }),
  model,
  models: {
    type: 'object',
    required: ['object', 'data'],
    properties: { object: { const: 'list' }, data: { type: 'array', minItems: 1, items: model } },
  },
  error: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['message', 'type', 'param', 'code'],
        properties: {
          message: text,
          type: text,
          param: orNull({ type: 'string' }),
          code: orNull({ type: 'string' }),
        },
      },
    },
  },
}

export type Shape = keyof typeof SCHEMAS

const ajv = new Ajv({ allowUnionTypes: true })
const validators = new Map<Shape, ValidateFunction>()

/** The same value, known to have this shape. */
export function checked<T>(shape: Shape, value: T): T {
  let validate = validators.get(shape)
  if (validate === undefined) {
    validate = ajv.compile(SCHEMAS[shape])
    validators.set(shape, validate)
  }
  const isValid = validate(value)
  expect(isValid ? [] : validate.errors, `${shape}: ${JSON.stringify(value)}`).toEqual([])
  return value
}
