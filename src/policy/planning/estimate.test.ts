import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { TEXTS } from '../../../test/support/texts.ts'
import { estimateMessageTokens, estimateTokens } from './estimate.ts'

const errorOf = (text: string): number => {
  const exact = encode(text).length
  return (estimateTokens(text) - exact) / exact
}

describe('estimate', () => {
  it.each(Object.entries(TEXTS))('is within a quarter of the tokenizer for a few lines of %s', (_, text) => {
    expect(Math.abs(errorOf(text))).toBeLessThan(0.25)
  })

  it('is within a fifth for all of them in one sampled message', () => {
    expect(Math.abs(errorOf(Object.values(TEXTS).join('\n\n')))).toBeLessThan(0.2)
  })

  it('samples long texts and stays as good', () => {
    const paragraphs: string[] = []
    for (let i = 0; i < 400; i++)
      paragraphs.push(Object.values(TEXTS)[(i * i + 3 * i) % 4] as string, String(i * 7_919))
    expect(Math.abs(errorOf(paragraphs.join('\n')))).toBeLessThan(0.1)
  })

  it('knows nothing as nothing, and whole numbers only', () => {
    expect(estimateTokens('')).toBe(0)
    expect(estimateTokens('a')).toBe(1)
    expect(Number.isInteger(estimateTokens('ab cd'.repeat(10_000)))).toBe(true)
    expect(estimateMessageTokens('')).toBeGreaterThan(0)
  })
})
