import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checked } from '../../test/support/openai-shapes.ts'
import type { Blame, Refusal } from '../domain/outcome.ts'
import { ERROR_TABLE, retryHeaders, statusOf, toOpenAiError } from './error-table.ts'
import { OPENAI_ERRORS } from './error-words.ts'

const refusal = (overrides: Partial<Refusal> = {}): Refusal => ({
  code: 'queue-full',
  because: 'the queue is full',
  blame: 'platform',
  retryAfterUs: 1_500_000,
  ...overrides,
})

const headersOf = (overrides: Partial<Refusal>): Record<string, string> => {
  const flat = retryHeaders(refusal(overrides))
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]!]] : [])))
}

it('every row is an error in OpenAI’s shape, whose status a client can act on', () => {
  for (const code of [...Object.keys(ERROR_TABLE), 'something-new']) {
    for (const blame of ['tenant', 'platform', 'request'] as const satisfies readonly Blame[]) {
      const error = toOpenAiError(refusal({ code, blame }))
      checked('error', { error })
      expect(error.code).toBe(code.replaceAll('-', '_'))
      expect(error.message).toMatch(/^The queue is full\. [A-Z].*\.?$/)
      expect([400, 401, 403, 404, 409, 413, 429, 500, 502, 503, 504]).toContain(statusOf(refusal({ code, blame })))
    }
  }
})

describe('when to come back', () => {
  it('is never sooner than true, never later than a second more, and within what SDKs accept', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 59_000_000 }), (retryAfterUs) => {
        const headers = headersOf({ retryAfterUs })
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
    expect(headersOf({ retryAfterUs: 3_600_000_000 })).toEqual({ 'retry-after': '59', 'x-should-retry': 'false' })
    const { body } = OPENAI_ERRORS.ofRefusal(refusal({ retryAfterUs: 3_600_000_000, detail: { limit: 5 } }))
    expect(JSON.parse(body)).toMatchObject({ error: { spillway: { limit: 5, retry_after_ms: 3_600_000 } } })
  })

  it('never: x-should-retry says so', () => {
    expect(headersOf({ retryAfterUs: undefined })).toEqual({ 'x-should-retry': 'false' })
  })
})

it('an engine’s own words and parameter are passed on', () => {
  const error = toOpenAiError(
    refusal({ code: 'replica-rejected-request', blame: 'request', said: 'No top_k.', param: 'top_k' }),
  )
  expect(error).toMatchObject({ param: 'top_k', type: 'invalid_request_error' })
  expect(error.message).toContain('No top_k.')
})
