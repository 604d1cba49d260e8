import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeConstantSpeed } from './cost.ts'
import { readTokensOf } from './read-tokens.ts'

const SPEED = makeConstantSpeed({ prefillUsPerToken: 40, tokenUs: 12_000 })
const PROMPT = { promptTokens: 4_000, cachedTokens: 0 }

describe('what can have been read of a prompt', () => {
  it.each([
    ['nothing at the instant of the grant', PROMPT, 0, 0],
    ['a share of the prompt by the time', PROMPT, 60_000, 1_500],
    ['no more than the prompt', PROMPT, 10_000_000, 4_000],
    ['no more than its uncached part', { promptTokens: 4_000, cachedTokens: 3_000 }, 10_000_000, 1_000],
    ['nothing of a prompt that is all cached', { promptTokens: 4_000, cachedTokens: 4_000 }, 10_000_000, 0],
    ['nothing where the clock went backwards', PROMPT, -5, 0],
  ])('%s', (_, prompt, elapsedUs, tokens) => {
    expect(readTokensOf(SPEED, prompt, elapsedUs)).toBe(tokens)
  })

  it('is whole, within the uncached prompt, and grows with the time', () => {
    const tokens = fc.nat(200_000)
    const micros = fc.nat(20_000_000)
    fc.assert(
      fc.property(tokens, tokens, micros, micros, (promptTokens, cachedTokens, aUs, bUs) => {
        const prompt = { promptTokens, cachedTokens }
        const sooner = readTokensOf(SPEED, prompt, Math.min(aUs, bUs))
        const later = readTokensOf(SPEED, prompt, Math.max(aUs, bUs))
        expect(Number.isInteger(sooner)).toBe(true)
        expect(sooner).toBeGreaterThanOrEqual(0)
        expect(sooner).toBeLessThanOrEqual(later)
        expect(later).toBeLessThanOrEqual(Math.max(0, promptTokens - cachedTokens))
      }),
    )
  })
})
