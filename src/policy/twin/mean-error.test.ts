import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MeanError } from './mean-error.ts'

const FACTOR_MAX = 2
const errorOf = (ratios: readonly number[]): number => {
  const error = new MeanError(30_000_000, FACTOR_MAX)
  for (const [i, ratio] of ratios.entries()) error.observe(i, ratio, 1)
  return error.view()!
}
const rows = (count: number, ratio: number): number[] => Array.from({ length: count }, () => ratio)

describe('a mean error', () => {
  it('follows the example of its description, and knows nothing before the first row', () => {
    expect(new MeanError(1, FACTOR_MAX).view()).toBeUndefined()
    expect(errorOf([...rows(90, 1.1), ...rows(10, 0.001)])).toBeCloseTo(2 ** (0.9 * Math.log2(1.1) + 0.1) - 1, 4)
  })

  it.each([1 / 1_000, 1 / 30, 1 / 3, 3, 30, 1_000])(
    'one row in a hundred that is off by %s moves it by 0.02',
    (off) => {
      expect(errorOf([...rows(50, 1.1), off, ...rows(49, 1 / 1.1)])).toBeLessThan(0.12)
    },
  )

  it.each([1 / 4, 1 / 1.4, 1.4, 4])('a model that is off by %s in every row has that error, up to the bound', (off) => {
    const factor = Math.max(off, 1 / off)
    expect(errorOf(rows(40, off))).toBeCloseTo(Math.min(factor, FACTOR_MAX) - 1, 6)
  })

  it('is bounded, the same for a ratio and its inverse, and grows with each error', () => {
    const ratio = fc.double({ min: 0, max: 1e9, noNaN: true })
    fc.assert(
      fc.property(fc.array(ratio, { minLength: 1, maxLength: 50 }), fc.nat(), (ratios, at) => {
        const error = errorOf(ratios)
        expect(error).toBeGreaterThanOrEqual(-1e-9)
        expect(error).toBeLessThanOrEqual(FACTOR_MAX - 1 + 1e-9)
        expect(errorOf(ratios.map((one) => 1 / Math.max(1e-9, one)))).toBeCloseTo(error, 6)
        const worse = ratios.with(at % ratios.length, 1e9)
        expect(errorOf(worse)).toBeGreaterThanOrEqual(error - 1e-9)
      }),
    )
  })
})
