import { describe, expect, it } from 'vitest'
import { Capital } from './capital.ts'

const betting = (...seen: readonly number[]): Capital => {
  const capital = new Capital()
  for (const y of seen) capital.observe(y)
  return capital
}

describe('a capital', () => {
  it('grows as its header says: fifteen wins in a row make over 3,500 of 1', () => {
    expect(betting(...Array<number>(15).fill(1)).value).toBeGreaterThan(3_500)
    expect(betting(...Array<number>(15).fill(1)).value).toBeLessThan(3_700)
  })

  it('keeps the most that it ever was', () => {
    const capital = betting(1, 1, 1)
    const { value } = capital
    capital.observe(-1)
    expect(capital.value).toBeLessThan(value)
    expect(capital.highest).toBe(value)
  })

  it('is the same for bets at several gateways as for all of them at one', () => {
    const here = betting(1, 1, -0.5)
    here.putBeside([betting(1, 0.3).tally(), betting(-1, 0.8, 1).tally()])
    const alone = betting(1, 1, -0.5, 1, 0.3, -1, 0.8, 1)
    expect(here.value).toBeCloseTo(alone.value, 9)
    expect(here.count).toBe(8)
  })

  it('forgets what others have told before when they tell more', () => {
    const here = betting(1)
    here.putBeside([betting(1).tally()])
    here.putBeside([betting(1, 1).tally()])
    expect(here.value).toBeCloseTo(betting(1, 1, 1).value, 9)
    here.putBeside([])
    expect([here.value, here.count]).toEqual([betting(1).value, 1])
  })

  it('stays a finite number', () => {
    const long = betting(...Array<number>(2_000).fill(1))
    long.putBeside([long.tally(), long.tally()])
    expect(Number.isFinite(long.value)).toBe(true)
  })
})
