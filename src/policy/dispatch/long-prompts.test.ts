import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'
import { ReadingTime } from './long-prompts.ts'
import type { Effect } from './offer.ts'

const MS = 1_000
/** A step of 2,000 tokens takes 50 ms: 30,000 tokens take 750 ms, more than a quarter of the promise of 2 s. */
const READING = { stepTokens: 2_000, readUs: (tokens: number) => tokens * 25 }
const HUGE = 30_000
const SHORT = 500

/** A pool whose replicas read one prompt after the other, in virtual time. */
class ReadingPool {
  readonly dispatcher = new Dispatcher()
  readonly grantedAt = new Map<string, number>()
  readonly waiting = new Set<string>()
  readonly reading = new Map<string, { leaseId: number; replicaId: string; tokens: number; endsAt: number }>()
  now = 0
  readonly #tokens = new Map<string, number>()
  readonly #freeAt = new Map<string, number>()

  constructor(replicaCount: number) {
    for (let i = 0; i < replicaCount; i++) {
      const replica = { id: `r${i}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
      this.dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: 256 }), reading: READING })
    }
  }

  send(
    tenantId: string,
    tokens: number,
    over: { weight?: number; org?: string; band?: 'standard' | 'offline' } = {},
  ): string {
    const ticketId = `${tenantId}/${this.#tokens.size}`
    this.#tokens.set(ticketId, tokens)
    this.waiting.add(ticketId)
    const offered = this.dispatcher.offer(this.now, {
      ticketId,
      poolId: 'pool',
      tenant: makeTenant(tenantId, { weight: over.weight ?? 1, orgId: over.org ?? tenantId }),
      key: makeKey(tenantId, tenantId),
      band: over.band ?? 'standard',
      bid: 0,
      estimate: makeEstimate(tokens, 1),
      arrivedAt: this.now,
      expiresAt: Number.POSITIVE_INFINITY,
      isReady: true,
    })
    expect(offered.kind).toBe('queued')
    this.#note(offered.effects)
    return ticketId
  }

  /** Everything that happens up to this instant. */
  runTo(until: number): void {
    for (;;) {
      const endsAt = Math.min(...Array.from(this.reading.values(), (one) => one.endsAt))
      const at = Math.min(endsAt, this.dispatcher.nextWakeupAt() ?? Number.POSITIVE_INFINITY)
      if (at > until || at === Number.POSITIVE_INFINITY) break
      expect(at).toBeGreaterThanOrEqual(this.now)
      this.now = at
      for (const [ticketId, one] of this.reading) if (one.endsAt === at) this.#end(ticketId, one.leaseId)
      this.#note(this.dispatcher.onWakeup(at))
      this.dispatcher.assertInvariants()
    }
    if (until < Number.POSITIVE_INFINITY) this.now = until
  }

  /** Long prompts that are being read, by replica. */
  longByReplica(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { replicaId, tokens } of this.reading.values()) {
      if (tokens > READING.stepTokens) counts.set(replicaId, (counts.get(replicaId) ?? 0) + 1)
    }
    return counts
  }

  #end(ticketId: string, leaseId: number): void {
    this.reading.delete(ticketId)
    this.#note(this.dispatcher.begin(this.now, leaseId))
    const measured = { cost: 1, ending: 'finished', firstTokenUs: 1, meanTokenUs: 1 } as const
    this.#note(this.dispatcher.release(this.now, leaseId, measured))
  }

  #note(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'granted') throw new Error(`a turn was expected, not ${effect.kind}`)
      const { id: leaseId, replica } = effect.lease
      const tokens = this.#tokens.get(effect.ticketId) as number
      const startsAt = Math.max(this.now, this.#freeAt.get(replica.id) ?? 0)
      const endsAt = startsAt + READING.readUs(tokens)
      this.#freeAt.set(replica.id, endsAt)
      this.waiting.delete(effect.ticketId)
      this.grantedAt.set(effect.ticketId, this.now)
      this.reading.set(effect.ticketId, { leaseId, replicaId: replica.id, tokens, endsAt })
    }
  }
}

describe('reading time', () => {
  it('is earned by the share and spent by what is read; a debt bars until it is paid', () => {
    const time = new ReadingTime()
    expect(time.barredUntil(0, 1 / 3, true)).toBeUndefined()
    time.start(0, 1 / 3)
    expect(time.barredUntil(100, 1 / 3, true)).toBe(Number.POSITIVE_INFINITY)
    time.end(900, 1 / 3, 900)
    expect(time.debtUs(900, 1 / 3)).toBeCloseTo(600)
    expect(time.barredUntil(900, 1 / 3, true)).toBe(2_700)
    expect(time.barredUntil(900, 1 / 3, false)).toBeUndefined()
    expect(time.barredUntil(2_700, 1 / 3, true)).toBeUndefined()
  })

  it('nothing is saved, and a debt is never more than the last prompt took', () => {
    const time = new ReadingTime()
    for (let i = 0; i < 10; i++) {
      time.start(i * 900, 0.1)
      time.end((i + 1) * 900, 0.1, 900)
    }
    expect(time.debtUs(9_000, 0.1)).toBe(900)
    expect(time.debtUs(1_000_000, 0.1)).toBe(0)
  })
})

describe('long prompts', () => {
  it('are read one at a time at each replica, and short ones go beside them', () => {
    const pool = new ReadingPool(1)
    pool.send('a', 3_000)
    pool.send('b', 3_000)
    const short = pool.send('c', SHORT)
    expect(pool.longByReplica()).toEqual(new Map([['r0', 1]]))
    expect(pool.grantedAt.has(short)).toBe(true)
    pool.runTo(75 * MS)
    expect(pool.waiting.size).toBe(0)
  })

  it('of a tenant that is alone use every replica', () => {
    const pool = new ReadingPool(3)
    for (let i = 0; i < 6; i++) pool.send('huge', HUGE)
    expect(pool.longByReplica().size).toBe(3)
  })

  it('leave a replica to the others while these are active, and come back when they are gone', () => {
    const pool = new ReadingPool(2)
    pool.send('calm', SHORT)
    for (let i = 0; i < 8; i++) pool.send('huge', HUGE)
    expect(pool.longByReplica().size).toBe(1)
    // The other tenant's window is over 2 s after its last ticket ended: both replicas from the next turn on.
    pool.runTo(3_000 * MS)
    expect(pool.longByReplica().size).toBe(2)
  })

  it('get the tenant’s share of the time where there is one replica', () => {
    const pool = new ReadingPool(1)
    for (let i = 0; i < 40; i++) pool.send('huge', HUGE)
    let readUs = 0
    for (let at = 0; at < 15_000 * MS; at += 10 * MS) {
      if (at % (500 * MS) === 0) pool.send('calm', SHORT)
      pool.runTo(at)
      if (pool.longByReplica().size > 0) readUs += 10 * MS
    }
    // Half of the time, give or take one prompt; short prompts that stand before it in the engine are part of it.
    expect(readUs / (15_000 * MS)).toBeGreaterThan(0.45)
    expect(readUs / (15_000 * MS)).toBeLessThan(0.56)
  })

  it('get the share that the org’s own weight leaves the tenant', () => {
    const readAtOnce = (orgWeight: number | undefined): number => {
      const pool = new ReadingPool(4)
      pool.dispatcher.reweigh({ kind: 'org', orgId: 'crowd', weight: orgWeight })
      pool.send('calm', SHORT)
      for (const sibling of ['s1', 's2', 's3']) pool.send(sibling, SHORT, { org: 'crowd' })
      for (let i = 0; i < 8; i++) pool.send('huge', HUGE, { org: 'crowd', weight: 5 })
      return pool.longByReplica().size
    }
    // Five of nine shares of four replicas are 2.2, rounded up; with the org at a quarter, five eighths of one replica.
    expect(readAtOnce(undefined)).toBe(3)
    expect(readAtOnce(1 / 3)).toBe(1)
    expect(readAtOnce(1)).toBe(2)
  })

  it('bar no prompt that hinders nobody: a quarter of the others’ promise is theirs', () => {
    const pool = new ReadingPool(2)
    pool.send('calm', SHORT)
    for (let i = 0; i < 4; i++) pool.send('reader', 19_000)
    expect(pool.longByReplica().size).toBe(2)
  })

  it('that must wait stand before nobody: their own tenant waits for its reading time, the others for nothing', () => {
    const pool = new ReadingPool(1)
    pool.send('calm', SHORT)
    for (let i = 0; i < 3; i++) pool.send('huge', HUGE)
    const waitOf = (id: string, tokens: number) =>
      pool.dispatcher.roomWait(pool.now, 'pool', { key: makeKey(id, id), band: 'standard' }, makeEstimate(tokens, 1))
    expect(waitOf('calm', SHORT).readingUs).toBe(0)
    // Half of the time is the tenant's: two prompts of 750 ms stand before this one, and one is being read.
    expect(waitOf('huge', HUGE).readingUs).toBeGreaterThanOrEqual(3 * 2 * 750 * MS)
    expect(waitOf('huge', SHORT).readingUs).toBeGreaterThan(0)
  })

  it('of offline work make room too, and offline work makes no tenant active', () => {
    const pool = new ReadingPool(2)
    pool.send('jobs', SHORT, { band: 'offline' })
    for (let i = 0; i < 4; i++) pool.send('huge', HUGE)
    expect(pool.longByReplica().size).toBe(2)
    const other = new ReadingPool(2)
    other.send('calm', SHORT)
    for (let i = 0; i < 4; i++) other.send('jobs', HUGE, { band: 'offline' })
    expect(other.longByReplica().size).toBe(1)
  })

  it('are all read in the end, within every bound, whoever sends what', () => {
    const sends = fc.array(
      fc.record({
        gapUs: fc.nat(400 * MS),
        tenant: fc.constantFrom('a', 'b', 'c', 'd'),
        weight: fc.constantFrom(0.1, 1, 5),
        tokens: fc.constantFrom(100, 3_000, 25_000, HUGE, 90_000),
        band: fc.constantFrom('standard' as const, 'standard' as const, 'offline' as const),
      }),
      { minLength: 1, maxLength: 40 },
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), sends, (replicaCount, list) => {
        const pool = new ReadingPool(replicaCount)
        for (const { gapUs, tenant, weight, tokens, band } of list) {
          pool.runTo(pool.now + gapUs)
          pool.send(tenant, tokens, { weight, band })
          pool.dispatcher.assertInvariants()
          for (const count of pool.longByReplica().values()) expect(count).toBe(1)
        }
        pool.runTo(Number.POSITIVE_INFINITY)
        expect(pool.waiting.size).toBe(0)
        expect(pool.dispatcher.nextWakeupAt()).toBeUndefined()
      }),
      { numRuns: 150 },
    )
  })
})
