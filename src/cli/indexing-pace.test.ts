import { describe, expect, it } from 'vitest'
import { IndexingPace } from './indexing-pace.ts'

describe('the pace of indexing', () => {
  it('is not told before something has moved', () => {
    const pace = new IndexingPace()
    pace.observe(0, 10)
    pace.observe(1_000, 10)
    expect(pace.textFor(10, 100)).toBe('10 of 100 passages')
  })

  it('is passages a second, with the time that the rest will take', () => {
    const pace = new IndexingPace()
    pace.observe(0, 0)
    pace.observe(10_000, 53)
    expect(pace.textFor(120, 402)).toBe('120 of 402 passages, 5.3 a second, 54 s left')
    expect(pace.textFor(0, 10_000)).toMatch(/32 min left$/)
    expect(pace.textFor(0, 100_000)).toMatch(/6 h left$/)
  })

  it('follows the last samples, and remembers a bounded number', () => {
    const pace = new IndexingPace()
    for (let i = 0; i <= 100; i++) pace.observe(i * 1_000, i < 50 ? i * 100 : 5_000 + (i - 50))
    expect(pace.perSecond).toBeCloseTo(1)
  })
})
