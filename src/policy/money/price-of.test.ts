import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ModelPrice } from '../../domain/ledger.ts'
import { priceOf } from './price-of.ts'

const PRICE: ModelPrice = {
  version: 'v1',
  inputNano: 1_000_000_000,
  cachedNano: 100_000_000,
  outputNano: 4_000_000_000,
  requestNano: 0,
}

describe('a price', () => {
  it('is the sum of its parts, cached tokens once', () => {
    expect(priceOf(PRICE, { promptTokens: 1_000, cachedTokens: 600, outputTokens: 200 })).toBe(1_260_000)
    expect(priceOf({ ...PRICE, requestNano: 7 }, { promptTokens: 0, cachedTokens: 0, outputTokens: 0 })).toBe(7)
  })

  it('is never below zero, whatever an engine says of its cache', () => {
    expect(priceOf(PRICE, { promptTokens: 10, cachedTokens: 1_000, outputTokens: 0 })).toBe(1_000)
    expect(priceOf(PRICE, { promptTokens: -5, cachedTokens: -9, outputTokens: -1 })).toBe(0)
  })

  it('rounds once, half up, and stays exact for huge counts', () => {
    const cheap = { ...PRICE, inputNano: 500_000 }
    expect(priceOf(cheap, { promptTokens: 1, cachedTokens: 0, outputTokens: 0 })).toBe(1)
    expect(
      priceOf(
        { ...PRICE, inputNano: 1_000_000_000_001 },
        { promptTokens: 16_000_000, cachedTokens: 0, outputTokens: 0 },
      ),
    ).toBe(16_000_000_000_016)
  })

  it('never falls when more is used', () => {
    const count = fc.nat(1_000_000)
    fc.assert(
      fc.property(count, count, count, count, (promptTokens, cachedTokens, outputTokens, more) => {
        const usage = { promptTokens, cachedTokens, outputTokens }
        const price = priceOf(PRICE, usage)
        expect(priceOf(PRICE, { ...usage, outputTokens: outputTokens + more })).toBeGreaterThanOrEqual(price)
        expect(priceOf(PRICE, { ...usage, promptTokens: promptTokens + more })).toBeGreaterThanOrEqual(price)
      }),
    )
  })
})
