import fc from 'fast-check'
import { expect, it } from 'vitest'
import { leastTokens, mayExceed } from './size-doubt.ts'

it('doubts a size that could be twice as large, by the larger of both guesses', () => {
  const size = { rawTokens: 9_000, correctedTokens: 13_500 }
  expect(mayExceed(size, 32_768)).toBe(false)
  expect(mayExceed(size, 16_384)).toBe(true)
  expect(mayExceed({ rawTokens: 13_500, correctedTokens: 9_000 }, 16_384)).toBe(true)
  expect(leastTokens(size)).toBe(4_500)
})

it('is sure of nothing that it doubts', () => {
  const tokens = fc.integer({ min: 0, max: 1_000_000 })
  fc.assert(
    fc.property(tokens, tokens, tokens, (rawTokens, correctedTokens, tokensMax) => {
      const size = { rawTokens, correctedTokens }
      if (!mayExceed(size, tokensMax)) expect(leastTokens(size)).toBeLessThanOrEqual(tokensMax)
      expect(leastTokens(size)).toBeLessThanOrEqual(Math.min(rawTokens, correctedTokens))
    }),
  )
})
