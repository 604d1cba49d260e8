import { describe, expect, test } from 'vitest'
import { CacheTrust } from './cache-trust.ts'

const SECOND = 1_000_000

describe('what an engine has cached', () => {
  test('a zero of an engine that never reports says nothing', () => {
    const trust = new CacheTrust()
    for (let i = 0; i < 50; i++) trust.observe(i * SECOND, { expectedTokens: 600, reportedTokens: 0 })
    expect([trust.ratio, trust.hasReported]).toEqual([1, false])
  })

  test('half of what is expected, then nothing after its cache was switched off', () => {
    const trust = new CacheTrust()
    for (let i = 0; i < 100; i++) trust.observe(i * SECOND, { expectedTokens: 600, reportedTokens: 300 })
    expect(trust.ratio).toBeCloseTo(0.5, 2)
    for (let i = 100; i < 400; i++) trust.observe(i * SECOND, { expectedTokens: 600, reportedTokens: 0 })
    expect(trust.ratio).toBeLessThan(0.02)
  })

  test('more than expected is no more than all', () => {
    const trust = new CacheTrust()
    trust.observe(0, { expectedTokens: 100, reportedTokens: 900 })
    expect(trust.ratio).toBe(1)
  })

  test('answers of which nothing was expected teach no ratio', () => {
    const trust = new CacheTrust()
    trust.observe(0, { expectedTokens: 0, reportedTokens: 500 })
    expect([trust.ratio, trust.hasReported]).toEqual([1, true])
  })
})
