import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Breaker } from './breaker.ts'

const SECOND = 1_000_000

describe('a breaker', () => {
  it('opens after three failures in a row, and closes after a probe that works', () => {
    const changes: string[] = []
    const breaker = new Breaker((state) => void changes.push(state))
    breaker.failed(0)
    breaker.failed(0)
    breaker.succeeded(0)
    for (let i = 0; i < 3; i++) breaker.failed(1)
    expect(breaker.mayTry(2)).toBe(false)
    expect(breaker.mayTry(SECOND)).toBe(true)
    expect(breaker.mayTry(SECOND)).toBe(false)
    breaker.succeeded(SECOND)
    expect(breaker.mayTry(SECOND)).toBe(true)
    expect(changes).toEqual(['open', 'closed'])
  })

  it('asks again within five seconds, however long it was broken', () => {
    const breaker = new Breaker()
    let lastTryAt = 0
    for (let now = 0; now < 120 * SECOND; now += 10_000) {
      if (!breaker.mayTry(now)) continue
      expect(now - lastTryAt).toBeLessThan(5 * SECOND)
      lastTryAt = now
      breaker.failed(now)
    }
    expect(lastTryAt).toBeGreaterThan(110 * SECOND)
  })

  it('never stays shut for good, whoever forgets to report', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('try', 'ok', 'fail', 'wait'), { maxLength: 60 }), (steps) => {
        const breaker = new Breaker()
        let now = 0
        for (const step of steps) {
          if (step === 'try') breaker.mayTry(now)
          else if (step === 'ok') breaker.succeeded(now)
          else if (step === 'fail') breaker.failed(now)
          else now += 300_000
        }
        const tries = [0, 4.1, 8.2].map((later) => breaker.mayTry(now + later * SECOND))
        expect(tries).toContain(true)
      }),
    )
  })
})
