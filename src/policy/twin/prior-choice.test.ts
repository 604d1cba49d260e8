import { describe, expect, it } from 'vitest'
import { PriorChoice } from './prior-choice.ts'
import type { TwinPrior } from './twin-prior.ts'

const prior = (name: string, factor: number): TwinPrior => ({
  name,
  decode: [6_000 * factor, 100 * factor],
  read: [2_000 * factor, 25 * factor],
  tokenBudget: 2_048,
})
const FAST = prior('fast', 1)
const MIDDLE = prior('middle', 3)
const SLOW = prior('slow', 10)
const X = [1, 20]
const timeOf = ({ decode }: TwinPrior): number => decode[0]! + 20 * decode[1]!

describe('the choice of a prior', () => {
  it('begins with the cautious one, also where that is not among the others', () => {
    expect(new PriorChoice([FAST, MIDDLE], SLOW).prior).toBe(SLOW)
    expect(new PriorChoice([FAST, SLOW], SLOW).prior).toBe(SLOW)
  })

  it('is looked at after eight rows, and the nearest is taken with the factor that is left', () => {
    const choice = new PriorChoice([FAST, MIDDLE, SLOW], SLOW)
    for (let i = 0; i < 7; i++) choice.sawDecode(X, 1.2 * timeOf(MIDDLE))
    expect([choice.prior, choice.isNew()]).toEqual([SLOW, false])
    choice.sawDecode(X, 1.2 * timeOf(MIDDLE))
    expect(choice.prior).toBe(MIDDLE)
    expect(choice.scale.decode).toBeCloseTo(1.2, 6)
    // Nothing was read, so nothing is said of it.
    expect(choice.scale.read).toBe(1)
    expect([choice.isNew(), choice.isNew()]).toEqual([true, false])
  })

  it('changes with what comes later', () => {
    const choice = new PriorChoice([FAST, MIDDLE, SLOW], SLOW)
    for (let i = 0; i < 8; i++) choice.sawDecode(X, timeOf(MIDDLE))
    for (let i = 0; i < 120; i++) choice.sawRead(X, FAST.read[0]! + 20 * FAST.read[1]!)
    for (let i = 0; i < 128; i++) choice.sawDecode(X, timeOf(FAST))
    expect(choice.prior).toBe(FAST)
  })

  it('stays after some hundreds of rows, and after it was settled', () => {
    for (const isSettled of [true, false]) {
      const choice = new PriorChoice([FAST, MIDDLE, SLOW], SLOW)
      if (isSettled) choice.settle()
      else for (let i = 0; i < 512; i++) choice.sawDecode(X, timeOf(SLOW))
      for (let i = 0; i < 5_000; i++) choice.sawDecode(X, timeOf(FAST))
      expect(choice.prior).toBe(SLOW)
    }
  })

  it('bounds what one wild row says', () => {
    const choice = new PriorChoice([FAST, MIDDLE, SLOW], SLOW)
    for (let i = 0; i < 63; i++) choice.sawDecode(X, timeOf(MIDDLE))
    choice.sawDecode(X, 1e30)
    expect(choice.prior).toBe(MIDDLE)
    // At most a factor of 64 in one row of 64.
    expect(choice.scale.decode).toBeLessThan(1.08)
  })
})
