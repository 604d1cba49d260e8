import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { steadyLog2, steadyPow2 } from './steady-log.ts'

describe('steady logarithms', () => {
  it('are exact where a number is a power of two', () => {
    for (const whole of [-20, -1, 0, 1, 6, 20]) {
      expect(steadyLog2(2 ** whole)).toBe(whole)
      expect(steadyPow2(whole)).toBe(2 ** whole)
    }
  })

  it('differ from the runtime’s by less than a billionth', () => {
    fc.assert(
      fc.property(fc.double({ min: -64, max: 64, noNaN: true }), (exponent) => {
        expect(Math.abs(steadyLog2(2 ** exponent) - exponent)).toBeLessThan(1e-9)
        expect(Math.abs(steadyPow2(exponent) / 2 ** exponent - 1)).toBeLessThan(1e-9)
      }),
    )
  })
})
