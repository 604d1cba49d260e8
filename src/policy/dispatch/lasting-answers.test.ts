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

describe('lasting answers', () => {
  it('fill the pool while their tenant is alone', () => {
    const pool = new RoomyPool()
    times(120, () => pool.send('huge', LONG))
    expect(pool.runningOf('huge')).toHaveLength(100)
  })

  it('leave half of the shares of other active tenants free', () => {
    const pool = new RoomyPool()
    pool.send('a', SHORT)
    pool.send('b', SHORT)
    times(120, () => pool.send('huge', LONG))
    expect(pool.runningOf('huge')).toHaveLength(66)
    times(200, () => pool.send('a', SHORT))
    expect(pool.runningOf('a')).toHaveLength(201)
  })

  it('are bounded by sequences where memory is unknown', () => {
    const pool = new RoomyPool(Number.POSITIVE_INFINITY)
    pool.send('a', SHORT)
    times(500, () => pool.send('huge', LONG))
    expect(pool.runningOf('huge')).toHaveLength(384)
  })

  it('go on when one of them ends, and when the others have gone', () => {
    const pool = new RoomyPool()
    const chat = pool.send('a', SHORT)
    times(120, () => pool.send('huge', LONG))
    expect(pool.runningOf('huge')).toHaveLength(75)
    pool.end(pool.runningOf('huge')[0] as string)
    expect(pool.runningOf('huge')).toHaveLength(75)
    pool.end(chat)
    pool.wakeAt(4 * S)
    expect(pool.runningOf('huge')).toHaveLength(100)
  })

  it('of a tenant within its share are never held back', () => {
    const pool = new RoomyPool()
    pool.send('a', SHORT)
    pool.send('b', SHORT)
    times(120, () => pool.send('huge', LONG))
    times(30, () => pool.send('b', LONG))
    expect(pool.runningOf('b')).toHaveLength(31)
  })

  it('count what they may become while the answers of their tenant are not known', () => {
    const pool = new RoomyPool()
    pool.send('a', SHORT)
    const unknown = makeEstimate(0, 256, { outputTokensHigh: 1_024, outputTokensUnproven: 8_000 })
    times(120, () => pool.send('huge', unknown))
    expect(pool.runningOf('huge')).toHaveLength(75)
  })

  it('that must wait are not counted among what others wait for, and are counted again when they may go', () => {
    const pool = new RoomyPool()
    const chat = pool.send('a', SHORT)
    times(120, () => pool.send('huge', LONG))
    expect(pool.listener.counts.get('huge')).toBe(0)
    const place = { band: 'standard', bid: 0, arrivedAt: 0 } as const
    const seeker = { ...place, tenant: makeTenant('huge'), key: makeKey('huge', 'huge') }
    const perAnswerUs = Math.ceil(LONG.engineUs / 75)
    expect(pool.dispatcher.roomWait(0, 'pool', seeker, LONG)).toEqual({ perAnswerUs, isBarred: true, readingUs: 0 })
    pool.end(chat)
    pool.wakeAt(4 * S)
    expect(pool.listener.counts.get('huge')).toBe(20)
    // Alone again, and the memory is full: any of the hundred answers gives room back when it ends.
    const all = { perAnswerUs: Math.ceil(LONG.engineUs / 100), isBarred: false, readingUs: 0 }
    expect(pool.dispatcher.roomWait(4 * S, 'pool', seeker, LONG)).toEqual(all)
  })

  it('keep the next one out although nothing waits in its lane yet', () => {
    const pool = new RoomyPool()
    pool.send('a', SHORT)
    times(75, () => pool.send('huge', LONG))
    const huge = { band: 'standard', key: makeKey('huge', 'huge') } as const
    const other = { band: 'standard', key: makeKey('a', 'a') } as const
    const perAnswerUs = Math.ceil(LONG.engineUs / 75)
    expect(pool.dispatcher.roomWait(0, 'pool', huge, LONG)).toEqual({ perAnswerUs, isBarred: true, readingUs: 0 })
    expect(pool.dispatcher.roomWait(0, 'pool', other, SHORT)).toEqual({ perAnswerUs: 0, isBarred: false, readingUs: 0 })
    expect(pool.dispatcher.roomWait(0, 'gone', huge, LONG)).toEqual({ perAnswerUs: 0, isBarred: false, readingUs: 0 })
  })

  it('keep nobody out when those that waited behind the bar are gone and most of the running have ended', () => {
    const pool = new RoomyPool()
    pool.send('a', SHORT)
    const sent = Array.from({ length: 80 }, () => pool.send('huge', LONG))
    for (const ticketId of sent.slice(75)) pool.dispatcher.withdraw(0, ticketId)
    for (const ticketId of sent.slice(0, 55)) pool.end(ticketId)
    expect(pool.runningOf('huge')).toHaveLength(20)
    const huge = { band: 'standard', key: makeKey('huge', 'huge') } as const
    expect(pool.dispatcher.roomWait(0, 'pool', huge, LONG)).toEqual({ perAnswerUs: 0, isBarred: false, readingUs: 0 })
  })

  it('give room back by their mean, where a few long ones hold most of it', () => {
    const pool = new RoomyPool()
    times(100, () => pool.send('huge', LONG))
    const seeker = { band: 'standard', key: makeKey('huge', 'huge') } as const
    const spread = { ...LONG, meanCost: 2 * LONG.cost }
    expect(pool.dispatcher.roomWait(0, 'pool', seeker, spread).perAnswerUs).toBe((2 * LONG.engineUs) / 100)
    // The replicas are open, but for a shorter answer: that one finds room when one ends, too.
    expect(pool.dispatcher.poolFacts('pool')?.openReplicaCount).toBe(2)
    pool.end(pool.runningOf('huge')[0] as string)
    expect(pool.dispatcher.roomWait(0, 'pool', seeker, LONG).perAnswerUs).toBe(0)
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
