import fc from 'fast-check'
import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { TEXTS } from '../../../test/support/texts.ts'
import { Rng } from '../../base/rng.ts'
import { estimateTokens } from './estimate.ts'

const rng = (seed = 1): Rng => Rng.stream(seed, 'prompt-sampling')

const errorOf = (text: string, seed?: number): number => {
  const exact = encode(text).length
  return (estimateTokens(text, rng(seed)) - exact) / exact
}

describe('estimate', () => {
  it.each(Object.entries(TEXTS))('is within a quarter of the tokenizer for a few lines of %s', (_, text) => {
    expect(Math.abs(errorOf(text))).toBeLessThan(0.25)
  })

  it('is within a fifth for all of them in one sampled message', () => {
    const text = Object.values(TEXTS).join('\n\n')
    let mean = 0
    for (let seed = 0; seed < 50; seed++) mean += Math.abs(errorOf(text, seed)) / 50
    expect(mean).toBeLessThan(0.2)
  })

  it('samples long texts and stays as good', () => {
    const paragraphs: string[] = []
    for (let i = 0; i < 400; i++)
      paragraphs.push(Object.values(TEXTS)[(i * i + 3 * i) % 4] as string, String(i * 7_919))
    const text = paragraphs.join('\n')
    const errors = Array.from({ length: 50 }, (_, seed) => Math.abs(errorOf(text, seed)))
    expect(errors.reduce((sum, error) => sum + error) / 50).toBeLessThan(0.06)
    expect(Math.max(...errors)).toBeLessThan(0.15)
  })

  it('knows nothing as nothing, and whole numbers only', () => {
    expect(estimateTokens('', rng())).toBe(0)
    expect(estimateTokens('a', rng())).toBe(1)
    expect(Number.isInteger(estimateTokens('ab cd'.repeat(10_000), rng()))).toBe(true)
  })

  it('draws the same places from the same stream', () => {
    const text = Object.values(TEXTS).join(' ').repeat(20)
    expect(estimateTokens(text, rng(7))).toBe(estimateTokens(text, rng(7)))
    const drawn = new Set(Array.from({ length: 20 }, (_, seed) => estimateTokens(text, rng(seed))))
    expect(drawn.size).toBeGreaterThan(5)
  })
})

/** Cheap and dear text in the same proportions, wherever a client puts either. */
describe('a text that is dear in some places', () => {
  const CHEAP = 'e'
  const DEAR = '['
  const trueMean = (text: string): number => {
    // Short pieces are read whole.
    let sum = 0
    for (let i = 0; i < text.length; i += 500) sum += estimateTokens(text.slice(i, i + 500), rng())
    return sum
  }

  it.each([2_000, 8_000, 40_000])('has no place to hide, in %i characters', (length) => {
    const position = fc.integer({ min: 0, max: 31 })
    fc.assert(
      fc.property(fc.uniqueArray(position, { minLength: 8, maxLength: 24 }), (cheap) => {
        const size = length / 32
        const blocks = Array.from({ length: 32 }, (_, i) => (cheap.includes(i) ? CHEAP : `${DEAR}A1`).repeat(size))
        const text = blocks.map((block) => block.slice(0, size)).join('')
        let mean = 0
        for (let seed = 0; seed < 200; seed++) mean += estimateTokens(text, rng(seed)) / 200
        const whole = trueMean(text)
        expect(Math.abs(mean - whole) / whole).toBeLessThan(0.1)
      }),
      { numRuns: 15 },
    )
  })

  it('is estimated alike on the average when its blocks are shuffled', () => {
    const order = fc.shuffledSubarray(
      Array.from({ length: 24 }, (_, i) => i),
      { minLength: 24, maxLength: 24 },
    )
    const blocks = Array.from({ length: 24 }, (_, i) => (i % 3 === 0 ? 'x9[]'.repeat(50) : 'water '.repeat(40)))
    const meanOf = (text: string): number => {
      let mean = 0
      for (let seed = 0; seed < 200; seed++) mean += estimateTokens(text, rng(seed)) / 200
      return mean
    }
    const inOrder = meanOf(blocks.join(''))
    fc.assert(
      fc.property(order, (shuffled) => {
        const mean = meanOf(shuffled.map((i) => blocks[i] as string).join(''))
        expect(Math.abs(mean - inOrder) / inOrder).toBeLessThan(0.1)
      }),
      { numRuns: 20 },
    )
  })
})
