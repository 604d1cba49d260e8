import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checked } from '../../test/support/openai-shapes.ts'
import type { Blame } from '../domain/outcome.ts'
import { ERROR_TABLE, type ErrorCode, type ToldRefusal } from './error-table.ts'
import { OPENAI_ERRORS, retryHeaders, toOpenAiError } from './error-words.ts'
import { OIP_ERRORS } from './oip-errors.ts'

const refusal = (overrides: Partial<ToldRefusal> = {}): ToldRefusal => ({
  code: 'queue-full',
  because: 'the queue is full',
  blame: 'platform',
  retryAfterUs: 1_500_000,
  ...overrides,
})

const headersOf = (retryAfterUs: number | undefined): Record<string, string> => {
  const flat = retryHeaders({ retryAfterUs })
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]!]] : [])))
}

const CODES = Object.keys(ERROR_TABLE) as ErrorCode[]

it('every row is an error in OpenAI’s shape', () => {
  for (const code of CODES) {
    for (const blame of ['tenant', 'platform', 'request'] as const satisfies readonly Blame[]) {
      const error = toOpenAiError(refusal({ code, blame }))
      checked('error', { error })
      expect(error.code).toBe(code.replaceAll('-', '_'))
      expect(error.message).toMatch(/^The queue is full\. [A-Z].*\.?$/)
    }
  }
})

it('a fault is told in its own words, with underscores in its code', () => {
  const fault = { code: 'unsupported-parameter', message: 'No such thing.', param: 'top_k' } as const
  const { status, body, headers } = OPENAI_ERRORS.ofFault(fault)
  expect({ status, headers }).toEqual({ status: 400, headers: [] })
  expect(JSON.parse(body)).toEqual({
    error: { message: 'No such thing.', type: 'invalid_request_error', param: 'top_k', code: 'unsupported_parameter' },
  })
  expect(OIP_ERRORS.ofFault(fault)).toEqual({ status: 400, body: '{"error":"No such thing."}', headers: [] })
})
describe('when to come back', () => {
  it('is never sooner than true, never later than a second more, and within what SDKs accept', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 59_000_000 }), (retryAfterUs) => {
        const headers = headersOf(retryAfterUs)
        const [ms, seconds] = [Number(headers['retry-after-ms']), Number(headers['retry-after'])]
        expect(ms).toBeGreaterThanOrEqual(Math.max(1, retryAfterUs / 1_000))
        expect(ms).toBeLessThan(retryAfterUs / 1_000 + 2)
        expect(seconds * 1_000).toBeGreaterThanOrEqual(ms)
        expect(seconds).toBeLessThanOrEqual(59)
        expect(headers['x-should-retry']).toBeUndefined()
      }),
    )
  })

  it('in more than a minute: not by itself, and the truth is in the body', () => {
    expect(headersOf(3_600_000_000)).toEqual({ 'retry-after': '59', 'x-should-retry': 'false' })
    const { body } = OPENAI_ERRORS.ofRefusal(refusal({ retryAfterUs: 3_600_000_000, detail: { limit: 5 } }))
    expect(JSON.parse(body)).toMatchObject({ error: { spillway: { limit: 5, retry_after_ms: 3_600_000 } } })
  })

  it('never: x-should-retry says so', () => {
    expect(headersOf(undefined)).toEqual({ 'x-should-retry': 'false' })
  })
})

it('an engine’s own words and parameter are passed on', () => {
  const error = toOpenAiError(
    refusal({
      code: 'replica-rejected-request',
      blame: 'request',
      told: { status: 422, error: { message: 'No top_k.', param: 'top_k', type: 'theirs', code: null } },
    }),
  )
  expect(error).toMatchObject({ param: 'top_k', type: 'theirs' })
  expect(error.message).toContain('No top_k.')
})
