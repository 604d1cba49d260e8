import { describe, expect, it } from 'vitest'
import type { Measured } from './offer.ts'
import { PoolAnswers } from './pool-answers.ts'

const measured = (outputTokens: number, firstTokenUs?: number): Measured => ({
  cost: 4 * outputTokens,
  ending: 'finished',
  outputTokens,
  firstTokenUs,
  ...(firstTokenUs !== undefined && { meanTokenUs: 10_000, tokenCount: outputTokens }),
})

describe('a pool\u2019s answers', () => {
  it('are alike until eight have been seen, and then as alike as they are', () => {
    const answers = new PoolAnswers()
    for (let i = 0; i < 7; i++) answers.observe(measured(i % 2 === 0 ? 50 : 150))
    expect(answers.spread).toBe(0)
    answers.observe(measured(150))
    expect(answers.spread).toBeCloseTo(0.25, 2)
  })

  it('tell when they begin and how fast they come as soon as one of them is streamed, however many were not', () => {
    const answers = new PoolAnswers()
    for (let i = 0; i < 40; i++) answers.observe(measured(100))
    expect(answers).toMatchObject({ firstTokenUs: 0, tokenUs: 0 })
    answers.observe(measured(100, 200_000))
    expect(answers).toMatchObject({ firstTokenUs: 200_000, tokenUs: 10_000 })
    answers.observe(measured(100, 300_000))
    expect(answers.firstTokenUs).toBeCloseTo(210_000)
  })

  it('that nobody pays for, or that have no token, say nothing', () => {
    const answers = new PoolAnswers()
    for (let i = 0; i < 20; i++) {
      answers.observe({ ...measured(i + 1, 200_000), cost: 0 })
      answers.observe({ ...measured(i + 1, 200_000), outputTokens: 0 })
    }
    expect(answers).toMatchObject({ spread: 0, firstTokenUs: 0, tokenUs: 0 })
  })
})
