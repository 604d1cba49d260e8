import { expect, it } from 'vitest'
import { anthropicRateLimitHeaders, durationOf, rateLimitHeaders } from './rate-limit-headers.ts'

const VIEW = {
  requests: { limit: 60, remaining: 12, resetUs: 48_000_000 },
  tokens: { limit: 9_000, remaining: 8_999, resetUs: 6_600 },
}

/** Names and values as `writeHead` takes them, one after the other. */
const pairs = (headers: readonly string[]): Record<string, string> =>
  Object.fromEntries(headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1] ?? '']] : [])))

it.each([
  [0, '0ms'],
  [1, '1ms'],
  [20_000, '20ms'],
  [20_001, '21ms'],
  [999_000, '999ms'],
  [1_000_000, '1s'],
  [1_200_000, '1.2s'],
  [1_200_001, '1.3s'],
  [59_900_000, '59.9s'],
  [59_950_000, '1m0s'],
  [60_000_000, '1m0s'],
  [61_500_000, '1m2s'],
  [360_000_000, '6m0s'],
  [3_599_000_000, '59m59s'],
  [3_600_000_000, '1h0m0s'],
  [90_061_000_000, '25h1m1s'],
])('%d µs until a bucket is full are written as %s', (us, text) => expect(durationOf(us)).toBe(text))

it('are OpenAI’s, with a duration, for each limit that there is', () => {
  expect(pairs(rateLimitHeaders(VIEW))).toEqual({
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '12',
    'x-ratelimit-reset-requests': '48s',
    'x-ratelimit-limit-tokens': '9000',
    'x-ratelimit-remaining-tokens': '8999',
    'x-ratelimit-reset-tokens': '7ms',
  })
  expect(rateLimitHeaders({ ...VIEW, requests: undefined })).toHaveLength(6)
  expect(rateLimitHeaders({ requests: undefined, tokens: undefined })).toEqual([])
})

it('are Anthropic’s, with the time at which the bucket is full', () => {
  const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5)
  expect(pairs(anthropicRateLimitHeaders({ ...VIEW, tokens: undefined }, nowMs))).toEqual({
    'anthropic-ratelimit-requests-limit': '60',
    'anthropic-ratelimit-requests-remaining': '12',
    'anthropic-ratelimit-requests-reset': '2026-01-02T03:04:53.000Z',
  })
  expect(anthropicRateLimitHeaders({ ...VIEW, requests: undefined }, nowMs).at(-1)).toBe('2026-01-02T03:04:05.007Z')
})
