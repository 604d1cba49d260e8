import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { unitsOf, usdText } from './usd-text.ts'

describe('money as text', () => {
  it('is exact and short', () => {
    expect([0n, 1n, 1_260_000n, 10n ** 9n, -15n * 10n ** 8n].map(usdText)).toEqual([
      '0',
      '0.000000001',
      '0.00126',
      '1',
      '-1.5',
    ])
  })

  it('is read back as it was written', () => {
    fc.assert(
      fc.property(fc.bigInt(), (nano) => {
        expect(unitsOf(usdText(nano), 9)).toBe(nano)
      }),
    )
    for (const text of ['', '1e3', '.5', '+1', '0.0000000001']) expect(unitsOf(text, 9)).toBeUndefined()
  })
})
