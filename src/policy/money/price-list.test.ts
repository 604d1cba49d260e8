import { describe, expect, it } from 'vitest'
import { FREE, PriceList, type PriceListSpec } from './price-list.ts'

const listOf = (version: string, from: number, models: readonly string[], orgId?: string): PriceListSpec => ({
  version,
  from,
  orgId,
  prices: new Map(models.map((model) => [model, { inputNano: 1, cachedNano: 1, outputNano: 1, requestNano: 0 }])),
})

describe('a price list', () => {
  const prices = new PriceList([
    listOf('all-2', 300, ['small']),
    listOf('all-1', 100, ['small', 'large']),
    listOf('own', 200, ['small'], 'acme'),
  ])
  const version = (now: number, orgId: string, model: string): string => prices.of(now, orgId, model).version

  it('is the newest in force, an org’s own before those for everybody', () => {
    expect([99, 100, 299, 300].map((now) => version(now, 'other', 'small'))).toEqual(['', 'all-1', 'all-1', 'all-2'])
    expect([150, 200, 400].map((now) => version(now, 'acme', 'small'))).toEqual(['all-1', 'own', 'own'])
    expect(version(400, 'acme', 'large')).toBe('all-1')
  })

  it('has nothing for a model that it does not name', () => {
    expect(prices.of(400, 'acme', 'unknown')).toBe(FREE)
    expect(new PriceList().of(1, 'acme', 'small')).toBe(FREE)
  })

  it('can be replaced; a price that was taken before stays what it was', () => {
    const list = new PriceList([listOf('old', 0, ['small'])])
    const taken = list.of(1, 'a', 'small')
    list.replace([listOf('new', 0, ['small'])])
    expect([taken.version, list.of(1, 'a', 'small').version]).toEqual(['old', 'new'])
  })
})
