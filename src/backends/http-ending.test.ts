import { expect, it } from 'vitest'
import { endingOf } from './http-ending.ts'

const redact = (text: string): string => text
const refusalOf = (json: unknown) => {
  const ending = endingOf({ status: 400, json, retryAfterS: undefined, redact })
  return ending.kind === 'refused' ? ending.refusal.code : ending.kind
}

it.each<[string, unknown]>([
  ['OpenAI', { error: { message: 'Too long.', type: 'invalid_request_error', code: 'context_length_exceeded' } }],
  ['vLLM', { object: 'error', message: "This model's maximum context length is 4096 tokens.", code: 400 }],
  ['newer vLLM', { error: { message: "This model's maximum context length is 4096 tokens.", code: 400 } }],
  ['llama.cpp', { error: { code: 400, message: 'too large', type: 'exceed_context_size_error' } }],
  [
    'SGLang',
    { error: { message: "The input (5000 tokens) is longer than the model's context length (4096 tokens)." } },
  ],
  [
    'vLLM with tokens instead of text',
    {
      error: {
        message: 'The decoder prompt (length 5000) is longer than the maximum model length of 4096.',
        code: 400,
      },
    },
  ],
  [
    'vLLM behind its Rust front end',
    {
      error: {
        message: "this model's maximum context length is 4096 tokens, however you requested 5000 tokens",
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request_error',
      },
    },
  ],
  [
    'SGLang whose memory is smaller than its context',
    {
      object: 'error',
      message: 'Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens).',
      type: 'BAD_REQUEST',
      code: 400,
    },
  ],
])('knows a prompt that is too long for %s', (_, json) => {
  expect(refusalOf(json)).toBe('context-length-exceeded')
})

it.each<[unknown]>([[{ error: { message: 'No top_k.' } }], [undefined], ['context'], [{ error: { code: 400 } }]])(
  'takes %j for another mistake',
  (json) => {
    expect(refusalOf(json)).toBe('replica-rejected-request')
  },
)

it('knows that TorchServe, which says 400 to a wrong key, denies us', () => {
  const json = { code: 400, type: 'InvalidKeyException', message: 'Token Authorization failed.' }
  expect(refusalOf(json)).toBe('replica-denied')
})
