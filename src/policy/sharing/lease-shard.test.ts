import { describe, expect, it } from 'vitest'
import { type Account, LeaseShard } from './lease-shard.ts'

/** The store's side, trap by trap; the differential test has the arithmetic. */
const SECOND = 1_000_000
const member = (id: string, over: { epoch?: string; told?: number; forgetMs?: number } = {}) => ({
  id,
  epoch: '',
  told: 0,
  ttlMs: 1_000,
  forgetMs: 600_000,
  ...over,
})
const account = (over: Partial<Account> = {}): Account => ({
  name: 't',
  birth: 1,
  perMinute: 60,
  half: 10,
  spent: 0,
  granted: 0,
  deposited: 0,
  want: 4,
  epoch: '',
  need: 0,
  ...over,
})

describe('a lease shard', () => {
  it('gives out what the header says', () => {
    const shard = new LeaseShard()
    shard.take(SECOND, member('b'), [])
    expect(shard.take(SECOND, member('a'), [account()]).accounts).toEqual([{ granted: 4, level: 6 }])
    const spent = account({ spent: 4, granted: 4 })
    expect(shard.take(SECOND, member('a'), [spent]).accounts).toEqual([{ granted: 7, level: 3 }])
    expect(shard.take(SECOND, member('b'), [account({ spent: 2 })]).accounts).toEqual([{ granted: 3, level: 0 }])
  })

  it('changes nothing for a call that is carried out again, and ignores an earlier life of an account', () => {
    const shard = new LeaseShard()
    const debt = account({ spent: 3, want: 0, birth: 5 })
    for (let i = 0; i < 3; i++)
      expect(shard.take(SECOND, member('a'), [debt]).accounts).toEqual([{ granted: 3, level: 7 }])
    expect(shard.take(SECOND, member('a'), [account({ birth: 4, granted: 99 })]).accounts[0]?.granted).toBe(-1)
  })

  it('credits a deposit once', () => {
    const shard = new LeaseShard()
    shard.take(SECOND, member('a'), [account({ want: 8 })])
    const deposit = account({ spent: 5, granted: 8, deposited: 5, want: 0 })
    for (let i = 0; i < 3; i++)
      expect(shard.take(SECOND, member('a'), [deposit]).accounts).toEqual([{ granted: 8, level: 7 }])
  })

  it('refills for those who are heard, and stands still when the clock is set back', () => {
    const shard = new LeaseShard()
    for (const id of ['a', 'b']) shard.take(10 * SECOND, member(id), [])
    const all = account({ spent: 10, want: 0 })
    expect(shard.take(10 * SECOND, member('a'), [all]).accounts[0]?.level).toBe(0)
    // b is silent after a second: from then on a minute's 60 drip at half the pace.
    let level = 0
    for (let s = 11; s <= 18; s++) level = shard.take(s * SECOND, member('a'), [all]).accounts[0]?.level ?? 0
    expect(level).toBe(4)
    expect(shard.take(2 * SECOND, member('a'), [all]).accounts[0]?.level).toBe(4)
  })

  it('does not believe that it is full when it was emptied, and counts those who are not back', () => {
    const shard = new LeaseShard()
    const back = shard.take(10 * SECOND, member('a', { epoch: '77', told: 4 }), [account({ epoch: '77' })])
    expect(back).toMatchObject({ gatewayCount: 4, silentCount: 3, gapUs: -1, accounts: [{ granted: 0, level: 0 }] })
  })

  it('forgets gateways that are gone, and buckets that nobody uses', () => {
    const shard = new LeaseShard()
    for (let i = 0; i < 100; i++)
      shard.take((i + 1) * SECOND, member(`g${i}`, { forgetMs: 2_000 }), [account({ birth: i })])
    expect(shard.take(101 * SECOND, member('g', { forgetMs: 2_000 }), []).gatewayCount).toBeLessThan(4)
    expect(shard.holdingCount('t')).toBeLessThan(10)
    shard.sweep(110 * SECOND)
    expect(shard.bucketCount).toBe(1)
    shard.sweep(300 * SECOND)
    expect(shard.bucketCount).toBe(0)
  })
})
