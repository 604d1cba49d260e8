import { describe, expect, it } from 'vitest'
import { TokenRatio } from './token-ratio.ts'

describe('token ratio', () => {
  it('starts at one and finds the tokenizer’s own ratio', () => {
    const ratio = new TokenRatio()
    expect(ratio.correct(1_000)).toBe(1_000)
    for (let i = 1; i <= 300; i++) ratio.observe(i * 1_000, { estimatedTokens: 1_000, reportedTokens: 1_250 })
    expect(ratio.ratio).toBeCloseTo(1.25, 1)
    expect(ratio.correct(1_000)).toBeGreaterThan(1_230)
  })

  it('meters what is left of the error, signed and absolute', () => {
    const ratio = new TokenRatio()
    expect(ratio.view().errorMean).toBeUndefined()
    for (let i = 1; i <= 500; i++) {
      ratio.observe(i * 1_000_000, { estimatedTokens: 1_000, reportedTokens: i % 2 === 0 ? 800 : 1_200 })
    }
    const view = ratio.view()
    expect(view.errorAbsoluteMean).toBeGreaterThan(0.15)
    expect(view.errorAbsoluteMean).toBeLessThan(0.25)
    expect(Math.abs(view.errorMean as number)).toBeLessThan(0.06)
    expect(view.samples).toBe(500)
  })

  it('is not swung by one odd report, nor by none', () => {
    const ratio = new TokenRatio()
    ratio.observe(1, { estimatedTokens: 1_000, reportedTokens: 1 })
    expect(ratio.ratio).toBeGreaterThan(0.8)
    ratio.observe(2, { estimatedTokens: 1_000, reportedTokens: 0 })
    expect(ratio.view().samples).toBe(1)
  })

  it('follows a changed tokenizer', () => {
    const ratio = new TokenRatio()
    for (let i = 0; i < 5_000; i++) ratio.observe(i, { estimatedTokens: 1_000, reportedTokens: 1_000 })
    for (let i = 0; i < 2_000; i++) ratio.observe(i, { estimatedTokens: 1_000, reportedTokens: 1_500 })
    expect(ratio.ratio).toBeGreaterThan(1.4)
  })

  it('starts where it is told, and says when it has seen enough to be asked', () => {
    const ratio = new TokenRatio({ startRatio: 1.5 })
    expect(ratio.correct(1_000)).toBe(1_500)
    expect(ratio.isSettled).toBe(false)
    for (let i = 0; i < 4; i++) ratio.observe(i, { estimatedTokens: 1_000, reportedTokens: 1_000 })
    expect(ratio.isSettled).toBe(true)
    expect(ratio.ratio).toBe(1.25)
  })

  it('takes no report for more than the most that a text can be off by', () => {
    const ratio = new TokenRatio()
    for (let i = 0; i < 1_000; i++) ratio.observe(i, { estimatedTokens: 1_000, reportedTokens: 1e300 })
    expect(ratio.ratio).toBeLessThanOrEqual(8)
  })
})
