import { describe, expect, it } from 'vitest'
import { choosePool, type PoolOption } from './choose-pool.ts'

const S = 1_000_000
const pool = (poolId: string, over: Partial<PoolOption> = {}): PoolOption => ({
  poolId,
  region: poolId,
  isLocal: poolId.startsWith('here'),
  readyReplicaCount: 2,
  ttftUs: 200_000,
  roundTripUs: poolId.startsWith('here') ? 0 : 80_000,
  isShedding: false,
  ...over,
})

const check = (options: readonly PoolOption[], over: { tenantId?: string; hops?: number; random?: number } = {}) =>
  choosePool(100 * S, { tenantId: 'a', hops: 0, random: 0.5, ...over }, options)?.option.poolId

describe('choosing a pool', () => {
  it.each([
    ['local when all is equal', [pool('here'), pool('there')], 'here'],
    ['local when another is sooner, but not by enough', [pool('here', { ttftUs: 370_000 }), pool('there')], 'here'],
    ['another that is sooner', [pool('here', { ttftUs: 900_000 }), pool('there')], 'there'],
    ['another when the local one sheds', [pool('here', { isShedding: true }), pool('there')], 'there'],
    ['local when all shed', [pool('here', { isShedding: true }), pool('there', { isShedding: true })], 'here'],
    ['another when none is left here', [pool('here', { readyReplicaCount: 0 }), pool('there')], 'there'],
    ['the nearer of two others', [pool('there'), pool('farther', { roundTripUs: 200_000 })], 'there'],
    ['local when nobody is alive', ['here', 'there'].map((id) => pool(id, { readyReplicaCount: 0 })), 'here'],
  ])('takes %s', (_, options, wanted) => expect(check(options)).toBe(wanted))

  it('keeps dedicated pools for their tenants, and them in it', () => {
    const options = [pool('here'), pool('here-b', { dedicatedTo: ['b'], ttftUs: 500_000 })]
    expect(check(options)).toBe('here')
    expect(check(options, { tenantId: 'b' })).toBe('here-b')
    expect(check([pool('here-b', { dedicatedTo: ['b'] })])).toBeUndefined()
  })

  it('sends a request on only once', () => {
    expect(check([pool('here', { ttftUs: 900_000 }), pool('there')], { hops: 1 })).toBe('here')
  })

  it('lets a region that came back take its traffic little by little', () => {
    const at = (returnedAt: number) =>
      Array.from({ length: 100 }, (_, i) => check([pool('here', { returnedAt }), pool('there')], { random: i / 100 }))
    expect(at(100 * S).filter((id) => id === 'here')).toHaveLength(0)
    expect(at(85 * S).filter((id) => id === 'here')).toHaveLength(50)
    expect(at(70 * S).filter((id) => id === 'here')).toHaveLength(100)
  })
})
