import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import type { Estimate } from '../../domain/plan.ts'
import { LANE_DEFAULTS } from '../fairness/lane.ts'
import { FixedLimit } from '../limits/fixed.ts'
import type { BacklogListener } from './backlog-listener.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect } from './offer.ts'

const S = 1_000_000
/** 8,000 tokens take 160 s: more than twenty times the promise of 2 s. A hundred of them fill the two replicas. */
const LONG = makeEstimate(0, 8_000)
const SHORT = makeEstimate(100, 100)
const KV_TOKENS = 400_000

interface SendOptions {
  readonly weight?: number
  readonly band?: 'standard' | 'offline'
}

/** What listeners believe to wait, by tenant. */
class CountingListener implements BacklogListener {
  readonly counts = new Map<string, number>()
  joined(_now: number, { share }: Parameters<BacklogListener['joined']>[1]): void {
    this.counts.set(share.tenant.id, (this.counts.get(share.tenant.id) ?? 0) + 1)
  }
  granted(_now: number, { share }: Parameters<BacklogListener['granted']>[1]): void {
    this.left({ share })
  }
  left({ share }: Pick<Parameters<BacklogListener['left']>[0], 'share'>): void {
    this.counts.set(share.tenant.id, (this.counts.get(share.tenant.id) ?? 0) - 1)
  }
  begun(): void {}
  ended(): void {}
  reweighed(): void {}
}

class RoomyPool {
  readonly listener = new CountingListener()
  readonly dispatcher = new Dispatcher({
    listener: this.listener,
    options: { lanes: { ...LANE_DEFAULTS, depthMax: 1_000, engineUsMax: Number.POSITIVE_INFINITY } },
  })
  readonly running = new Map<string, number>()
  now = 0
  #sentCount = 0

  constructor(kvTokensMax = KV_TOKENS) {
    for (const id of ['r0', 'r1']) {
      const replica = { id, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
      const limit = new FixedLimit({ sequencesMax: 256 })
      this.dispatcher.addReplica(0, { replica, limit, kvTokensMax })
    }
  }

  send(tenantId: string, estimate: Estimate, { weight = 1, band = 'standard' }: SendOptions = {}): string {
    const ticketId = `${tenantId}/${this.#sentCount++}`
    const tenant = makeTenant(tenantId, { weight })
    const offered = this.dispatcher.offer(this.now, {
      ticketId,
      poolId: 'pool',
      tenant,
      key: makeKey(tenantId, tenantId),
      band,
      bid: 0,
      estimate,
      arrivedAt: this.now,
      expiresAt: Number.POSITIVE_INFINITY,
      isReady: true,
    })
    this.#note(offered.effects)
    this.dispatcher.assertInvariants()
    return ticketId
  }

  end(ticketId: string): void {
    const leaseId = this.running.get(ticketId) as number
    this.running.delete(ticketId)
    const measured = { cost: 1, ending: 'finished', firstTokenUs: 1, meanTokenUs: 1 } as const
    this.#note(this.dispatcher.release(this.now, leaseId, measured))
    this.dispatcher.assertInvariants()
  }

  wakeAt(now: number): void {
    this.now = now
    this.#note(this.dispatcher.onWakeup(now))
    this.dispatcher.assertInvariants()
  }

  runningOf(tenantId: string): string[] {
    return [...this.running.keys()].filter((id) => id.startsWith(`${tenantId}/`))
  }

  #note(effects: readonly Effect[]): void {
    for (const effect of effects) if (effect.kind === 'granted') this.running.set(effect.ticketId, effect.lease.id)
  }
}

const times = (count: number, send: () => void): void => {
  for (let i = 0; i < count; i++) send()
}

/** Twenty chats that have just come, which the tenant is therefore expected to send again. */
const chat = (pool: RoomyPool, tenantId: string): string[] =>
  Array.from({ length: 20 }, () => pool.send(tenantId, SHORT))

describe('held room', () => {
  it('is all of it while the tenant is alone', () => {
    const pool = new RoomyPool()
    times(120, () => pool.send('huge', LONG))
    expect(pool.runningOf('huge')).toHaveLength(100)
  })

  it('leaves what the others are expected to need, and no more', () => {
    const pool = new RoomyPool()
    for (const ticketId of [...chat(pool, 'a'), ...chat(pool, 'b')]) pool.end(ticketId)
    times(120, () => pool.send('huge', LONG))
    const held = pool.runningOf('huge').length
    expect(held).toBeGreaterThan(60)
    expect(held).toBeLessThan(98)
    chat(pool, 'a')
    chat(pool, 'b')
    expect([pool.runningOf('a'), pool.runningOf('b')].map((running) => running.length)).toEqual([20, 20])
  })

  it('is bounded by sequences where memory is unknown', () => {
    const pool = new RoomyPool(Number.POSITIVE_INFINITY)
    for (const ticketId of chat(pool, 'a')) pool.end(ticketId)
    times(600, () => pool.send('huge', LONG))
    const held = pool.runningOf('huge').length
    expect(held).toBeGreaterThan(256)
    expect(held).toBeLessThan(505)
  })

  it('may be taken again when a turn ends, and wholly when the others have gone', () => {
    const pool = new RoomyPool()
    for (const ticketId of chat(pool, 'a')) pool.end(ticketId)
    times(200, () => pool.send('huge', LONG))
    const held = pool.runningOf('huge').length
    expect(held).toBeLessThan(98)
    pool.end(pool.runningOf('huge')[0] as string)
    expect(pool.runningOf('huge').length).toBeGreaterThanOrEqual(held)
    pool.wakeAt(4 * S)
    expect(pool.runningOf('huge')).toHaveLength(100)
  })

  it('of a tenant within its share is never held back', () => {
    const pool = new RoomyPool()
    for (const tenantId of ['a', 'b']) for (const ticketId of chat(pool, tenantId)) pool.end(ticketId)
    times(30, () => pool.send('b', LONG))
    expect(pool.runningOf('b')).toHaveLength(30)
  })

  it('counts what answers may become while those of their tenant are not known', () => {
    const pool = new RoomyPool()
    for (const ticketId of chat(pool, 'a')) pool.end(ticketId)
    const unknown = makeEstimate(0, 256, { outputTokensHigh: 1_024, outputTokensUnproven: 16_000 })
    times(120, () => pool.send('huge', unknown))
    expect(pool.runningOf('huge').length).toBeLessThan(50)
  })

  it('counts answers that go far beyond their prediction with what they may become', () => {
    const short = makeEstimate(0, 100, { outputTokensHigh: 100, outputTokensMost: 16_000 })
    const longBeside = (tokens: number): number => {
      const pool = new RoomyPool()
      for (const ticketId of chat(pool, 'a')) pool.end(ticketId)
      const sent = Array.from({ length: 40 }, () => pool.send('huge', short))
      for (const ticketId of sent) pool.dispatcher.progress(0, pool.running.get(ticketId) as number, tokens)
      times(100, () => pool.send('huge', LONG))
      return pool.runningOf('huge').length - sent.length
    }
    expect(longBeside(150)).toBeGreaterThan(70)
    // Eight times as long as they are now: forty times 8,000 tokens, two fifths of the room.
    expect(longBeside(1_000)).toBeLessThan(50)
  })

  it('that is barred is not counted among what others wait for, and is counted again when it may be taken', () => {
    const pool = new RoomyPool()
    for (const ticketId of chat(pool, 'a')) pool.end(ticketId)
    times(200, () => pool.send('huge', LONG))
    expect(pool.listener.counts.get('huge')).toBe(0)
    const huge = { band: 'standard', key: makeKey('huge', 'huge') } as const
    const other = { band: 'standard', key: makeKey('a', 'a') } as const
    expect(pool.dispatcher.before(0, 'pool', huge, LONG).isBarred).toBe(true)
    expect(pool.dispatcher.before(0, 'pool', other, SHORT)).toEqual({ perAnswerUs: 0, isBarred: false, readingUs: 0 })
    expect(pool.dispatcher.before(0, 'gone', huge, LONG)).toEqual({ perAnswerUs: 0, isBarred: false, readingUs: 0 })
    pool.wakeAt(4 * S)
    expect(pool.listener.counts.get('huge')).toBe(100)
    // Alone again, and the memory is full: any of the hundred answers gives room back when it ends.
    const all = { perAnswerUs: Math.ceil(LONG.engineUs / 100), isBarred: false, readingUs: 0 }
    expect(pool.dispatcher.before(4 * S, 'pool', huge, LONG)).toEqual(all)
  })

  it('keeps nobody out when those that waited behind the bar are gone and most of the running have ended', () => {
    const pool = new RoomyPool()
    for (const ticketId of chat(pool, 'a')) pool.end(ticketId)
    const sent = Array.from({ length: 110 }, () => pool.send('huge', LONG))
    for (const ticketId of sent) if (!pool.running.has(ticketId)) pool.dispatcher.withdraw(0, ticketId)
    for (const ticketId of pool.runningOf('huge').slice(20)) pool.end(ticketId)
    expect(pool.runningOf('huge')).toHaveLength(20)
    const huge = { band: 'standard', key: makeKey('huge', 'huge') } as const
    expect(pool.dispatcher.before(0, 'pool', huge, LONG).perAnswerUs).toBe(0)
  })

  it('give room back by their mean, where a few long ones hold most of it', () => {
    const pool = new RoomyPool()
    times(100, () => pool.send('huge', LONG))
    const seeker = { band: 'standard', key: makeKey('huge', 'huge') } as const
    const spread = { ...LONG, meanCost: 2 * LONG.cost }
    expect(pool.dispatcher.before(0, 'pool', seeker, spread).perAnswerUs).toBe((2 * LONG.engineUs) / 100)
    // The replicas are open, but for a shorter answer: that one finds room when one ends, too.
    expect(pool.dispatcher.poolFacts('pool')?.openReplicaCount).toBe(2)
    pool.end(pool.runningOf('huge')[0] as string)
    expect(pool.dispatcher.before(0, 'pool', seeker, LONG).perAnswerUs).toBe(0)
  })

  it('all end, and every count returns to zero, whoever sends what', () => {
    const sent = fc.record({
      tenantId: fc.constantFrom('a', 'b', 'c'),
      isLong: fc.boolean(),
      count: fc.integer({ min: 1, max: 60 }),
      endCount: fc.integer({ min: 0, max: 40 }),
    })
    fc.assert(
      fc.property(fc.array(sent, { maxLength: 12 }), (steps) => {
        const pool = new RoomyPool()
        let sentCount = 0
        let endedCount = 0
        const endOne = (): void => {
          const [first] = pool.running.keys()
          if (first === undefined) return
          pool.end(first)
          endedCount++
        }
        for (const { tenantId, isLong, count, endCount } of steps) {
          times(count, () => pool.send(tenantId, isLong ? LONG : SHORT))
          sentCount += count
          times(endCount, endOne)
          pool.wakeAt(pool.now + S / 2)
        }
        for (let i = 0; i < 2 * sentCount && endedCount < sentCount; i++) {
          endOne()
          pool.wakeAt(pool.now + S)
        }
        expect(endedCount).toBe(sentCount)
        expect([...pool.listener.counts.values()].filter((count) => count !== 0)).toEqual([])
      }),
      { numRuns: 40 },
    )
  })
})
