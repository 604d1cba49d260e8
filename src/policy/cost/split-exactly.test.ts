import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { splitExactly } from './split-exactly.ts'

describe('an exact split', () => {
  it('gives what is left over to those who lost most by rounding, the first of equals first', () => {
    expect(splitExactly(10, [1, 1, 1])).toEqual([4, 3, 3])
    expect(splitExactly(10, [1, 2, 0.5])).toEqual([3, 6, 1])
    expect(splitExactly(0, [1, 2])).toEqual([0, 0])
    expect(splitExactly(7, [0, 0])).toEqual([0, 0])
    expect(splitExactly(7, [0, 3])).toEqual([0, 7])
  })

  it('loses nothing and makes nothing, and no part is a unit off its claim', () => {
    const weights = fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(fc.nat(2 ** 31 - 1), weights, (total, claims) => {
        const sum = claims.reduce((all, claim) => all + claim, 0)
        fc.pre(sum > 0)
        const parts = splitExactly(total, claims)
        expect(parts.reduce((all, part) => all + part, 0)).toBe(total)
        for (const [i, part] of parts.entries()) {
          expect(Number.isSafeInteger(part) && part >= 0).toBe(true)
          expect(Math.abs(part - total * ((claims[i] as number) / sum))).toBeLessThan(1 + 1e-6)
        }
      }),
    )
  })

  it('refuses what is not money', () => {
    expect(() => splitExactly(1.5, [1])).toThrow('whole units')
    expect(() => splitExactly(1, [-1])).toThrow('not negative')
  })
})
