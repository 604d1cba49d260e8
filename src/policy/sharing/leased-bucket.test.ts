import { describe, expect, it } from 'vitest'
import { LeaseShard } from './lease-shard.ts'
import type { LeasedBucket } from './leased-bucket.ts'
import { SliceBook } from './slice-book.ts'

const SECOND = 1_000_000
const MS = 1_000
const limit = { perMinute: 6_000, burst: 800 }
const options = { shardCount: 1 }

/** Gateways over one store, without delay: `renew` carries what is due there and back. */
function makeFleet(count: number, startAt = 10 * SECOND) {
  const store = new LeaseShard()
  const books = Array.from({ length: count }, (_, i) => new SliceBook(startAt, `g${i}`, options))
  const renew = (now: number, who: readonly SliceBook[] = books): void => {
    for (const book of who)
      for (const call of book.due(now)) book.answered(now, call, store.take(now, call.member, call.accounts))
  }
  const beat = (from: number, to: number, who: readonly SliceBook[] = books): void => {
    for (let now = from; now <= to; now += 250 * MS) renew(now, who)
  }
  renew(startAt)
  renew(startAt + 250 * MS)
  return { store, books, renew, beat, now: startAt + 250 * MS }
}

const spend = (bucket: LeasedBucket, now: number, amount: number): boolean => {
  if (bucket.fitsAt(now, amount) !== now) return false
  bucket.take(now, amount)
  return true
}

describe('a leased bucket', () => {
  it('lets a newcomer spend one slice on credit, and is charged for it once', () => {
    const { books, renew, now } = makeFleet(4)
    const bucket = books[0]!.bucket(now, 't', limit)
    expect(spend(bucket, now, 100)).toBe(true)
    expect(spend(bucket, now, 1)).toBe(false)
    expect(bucket.view(now)).toMatchObject({ limit: 800, remaining: 400 })
    renew(now + 50 * MS)
    // Half of the burst was in the store; 100 of it are the debt, and what was granted is in hand.
    expect(bucket.view(now + 50 * MS).remaining).toBeGreaterThanOrEqual(300)
    expect(bucket.view(now + 50 * MS).remaining).toBeLessThanOrEqual(310)
  })

  it('tells from the fleet\u2019s level when an amount will fit, and what never will', () => {
    const { books, renew, now } = makeFleet(2)
    const [a, b] = books.map((book) => book.bucket(now, 't', limit)) as [LeasedBucket, LeasedBucket]
    expect(a.fitsAt(now, 601)).toBeUndefined()
    for (let i = 0; i < 60; i++) {
      const at = now + i * MS
      spend(a, at, 10)
      spend(b, at, 10)
      renew(at)
    }
    const at = now + 60 * MS
    renew(at)
    const fitsAt = a.fitsAt(at, 300) as number
    expect(fitsAt).toBeGreaterThan(at + SECOND)
    expect(fitsAt).toBeLessThan(at + 4 * SECOND)
  })

  it('fetches what is larger than a slice, if the level has it', () => {
    const { books, renew, now } = makeFleet(4)
    const bucket = books[0]!.bucket(now, 't', limit)
    spend(bucket, now, 1)
    renew(now + 50 * MS)
    expect(bucket.fitsAt(now + 50 * MS, 300)).toBe(now + 100 * MS)
    expect(bucket.askFor(now + 50 * MS, 450)).toBe(false)
    expect(bucket.askFor(now + 50 * MS, 300)).toBe(true)
    expect(bucket.isAsking).toBe(true)
    renew(now + 51 * MS)
    expect(bucket.isAsking).toBe(false)
    expect(spend(bucket, now + 51 * MS, 300)).toBe(true)
  })

  it('says of a silent store when its safe share will have the amount', () => {
    const { books, renew, now } = makeFleet(4)
    const bucket = books[0]!.bucket(now, 't', limit)
    while (spend(bucket, now, 1));
    renew(now)
    // Silent for long: what was in hand is spent, and a quarter of 100 tokens a second drips.
    let at = now + 3 * SECOND
    while (spend(bucket, at, 1));
    const fitsAt = bucket.fitsAt(at, 10)!
    expect(fitsAt - at).toBeGreaterThan(300 * MS)
    expect(fitsAt - at).toBeLessThanOrEqual(400 * MS)
    expect(bucket.fitsAt(fitsAt - MS, 10)).toBeGreaterThan(fitsAt - MS)
    expect(bucket.fitsAt(fitsAt, 10)).toBe(fitsAt)
    // However long nothing is spent, no more than a slice gathers.
    at += 600 * SECOND
    let spent = 0
    while (spend(bucket, at, 1)) spent++
    expect(spent).toBe(100)
  })

  it('keeps refunds, and deposits what is over a slice for the others', () => {
    const { books, renew, now } = makeFleet(2)
    const [a, b] = books.map((book) => book.bucket(now, 't', limit)) as [LeasedBucket, LeasedBucket]
    a.fitsAt(now, 1)
    renew(now)
    a.askFor(now, 390)
    renew(now + MS)
    expect(spend(a, now + MS, 390)).toBe(true)
    spend(b, now + MS, 1)
    renew(now + 60 * MS)
    const before = b.view(now + 60 * MS).remaining
    a.giveBack(now + 60 * MS, 390)
    renew(now + 120 * MS)
    b.askFor(now + 120 * MS, 1)
    spend(b, now + 120 * MS, 1)
    for (let i = 0; i < 4; i++) {
      b.fitsAt(now + (180 + 50 * i) * MS, 150)
      renew(now + (180 + 50 * i) * MS)
    }
    expect(b.view(now + 400 * MS).remaining).toBeGreaterThan(before + 150)
  })

  it('lives on its safe share while the store is silent, and only the first second of it is charged', () => {
    const { store, books, renew, beat, now } = makeFleet(4)
    const [cut, ...others] = books as [SliceBook, ...SliceBook[]]
    const bucket = cut.bucket(now, 't', limit)
    const other = others[0]!.bucket(now, 't', limit)
    spend(bucket, now, 10)
    spend(other, now, 10)
    renew(now)
    let alone = 0
    const until = now + 9 * SECOND
    for (let at = now; at < until; at += 10 * MS) while (spend(bucket, at, 1)) alone++
    beat(now + 250 * MS, until, others)
    // 25 a second of 100, and what was in hand.
    expect(alone).toBeGreaterThan(8 * 25)
    expect(alone).toBeLessThan(9 * 25 + 100)
    const call = cut.due(until)[0]!
    const answer = store.take(until, call.member, call.accounts)
    expect(answer.gapUs).toBeGreaterThan(8 * SECOND)
    cut.answered(until, call, answer)
    const told = cut.due(until + 50 * MS)[0]!.accounts[0]!
    expect(told.spent).toBeLessThan(10 + 100 + 25)
  })

  it('is charged everything when its calls arrive and the answers are lost', () => {
    const { store, books, renew, now } = makeFleet(4)
    const [deaf] = books as [SliceBook]
    const bucket = deaf.bucket(now, 't', limit)
    spend(bucket, now, 10)
    renew(now)
    let alone = 0
    for (let at = now; at < now + 5 * SECOND; at += 50 * MS) {
      while (spend(bucket, at, 1)) alone++
      for (const call of deaf.due(at)) {
        store.take(at, call.member, call.accounts)
        deaf.answered(at, call, undefined)
      }
    }
    renew(now + 5 * SECOND)
    const told = deaf.due(now + 5.05 * SECOND)[0]!.accounts[0]!
    expect(told.spent).toBe(10 + alone)
  })

  it('is not listed for ever: an idle gateway sends beats and nothing else', () => {
    const { books, renew, now } = makeFleet(1)
    const buckets = Array.from({ length: 20 }, (_, i) => books[0]!.bucket(now, `t${i}`, limit))
    for (const bucket of buckets) spend(bucket, now, 1)
    for (let i = 1; i < 40; i++) renew(now + i * 50 * MS)
    const calls = books[0]!.due(now + 5 * SECOND)
    expect(calls.map(({ accounts }) => accounts.length)).toEqual([0])
    expect(buckets[0]!.isFull(now + 5 * SECOND)).toBe(false)
    expect(buckets[0]!.isFull(now + 70 * SECOND)).toBe(true)
  })

  it('puts a bounded number of accounts into a call', () => {
    const book = new SliceBook(0, 'g', { shardCount: 1, accountsMax: 3 })
    const buckets = Array.from({ length: 7 }, (_, i) => book.bucket(0, `t${i}`, limit))
    for (const bucket of buckets) spend(bucket, 0, 1)
    const sizes: number[] = []
    const store = new LeaseShard()
    for (let i = 0; i < 3; i++)
      for (const call of book.due(i * 50 * MS)) {
        sizes.push(call.accounts.length)
        book.answered(i * 50 * MS, call, store.take(i * 50 * MS, call.member, call.accounts))
      }
    expect(sizes[0]).toBe(3)
    expect(Math.max(...sizes)).toBe(3)
    expect(sizes.reduce((a, b) => a + b)).toBeGreaterThanOrEqual(7)
  })
})
