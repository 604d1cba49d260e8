import { describe, expect, it } from 'vitest'
import type { Replica } from '../../domain/fleet.ts'
import type { Estimate } from '../../domain/plan.ts'
import { NO_FACTORS, NOTHING_IN_FLIGHT, type PoolShare, type RoomAllowance } from '../../domain/pool-share.ts'
import type { Key, Tenant } from '../../domain/tenant.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'
import { ReplicaRoom } from './replica-room.ts'

/** A pool that several gateways share, as one gateway's dispatcher sees it. */
const replica = { id: 'r', poolId: 'pool', releaseId: 'm@1', region: '' } as unknown as Replica
const estimate = (tokens = 100): Estimate => ({
  promptTokens: tokens,
  cachedTokens: 0,
  outputTokens: 0,
  outputTokensHigh: 0,
  cost: 100,
  engineUs: 1_000,
})
const shareOf = (allowance: RoomAllowance, rest: Partial<PoolShare> = {}, others = NOTHING_IN_FLIGHT): PoolShare => ({
  rooms: new Map([['r', { allowance, others }]]),
  factors: NO_FACTORS,
  partMin: 0,
  ...rest,
})
const roomOf = () => new ReplicaRoom({ replica, limit: new FixedLimit({ sequencesMax: 8 }), kvTokensMax: 1_000 }, 0, 0)

describe('a shared room', () => {
  it('has two allowances, and the smaller counts', () => {
    const room = roomOf()
    room.share({ sequences: 3, kvTokens: 1_000 })
    expect(room.allowance).toBe(3)
    room.allow(1)
    expect(room.allowance).toBe(1)
    room.share({ sequences: 5, kvTokens: 1_000 })
    expect(room.allowance).toBe(1)
    room.allow(Number.POSITIVE_INFINITY)
    expect(room.allowance).toBe(5)
  })

  it('takes as many turns as it has slots, and no more KV tokens than its part', () => {
    const room = roomOf()
    room.share({ sequences: 4, kvTokens: 250 })
    let held = 0
    while (room.fits(estimate(), 'standard')) {
      room.ledger.hold(estimate())
      held++
    }
    expect(held).toBe(2)
    room.share({ sequences: 4, kvTokens: 1_000 })
    while (room.fits(estimate(), 'standard')) {
      room.ledger.hold(estimate())
      held++
    }
    expect(held).toBe(4)
    expect(room.isOpen()).toBe(false)
  })

  it('runs one turn that is larger than its part where the memory has room, as last told', () => {
    const room = roomOf()
    room.share({ sequences: 1, kvTokens: 100 })
    room.ledger.hear(0, { ...NOTHING_IN_FLIGHT, sequences: 3, kvTokens: 400 })
    expect(room.fits(estimate(600), 'standard')).toBe(true)
    expect(room.fits(estimate(700), 'standard')).toBe(false)
  })

  it('counts what others have in flight for placing and for the limit, until that lapses', () => {
    const room = roomOf()
    room.share({ sequences: 4, kvTokens: 1_000 })
    room.ledger.hold(estimate())
    room.ledger.hear(0, { ...NOTHING_IN_FLIGHT, sequences: 7, engineUs: 9_000 })
    expect(room.ledger.sequences).toBe(8)
    expect(room.ledger.engineUs).toBe(10_000)
    expect(room.fits(estimate(), 'standard')).toBe(false)
    expect(room.ledger.lapse(2_000_000)).toBe(true)
    expect(room.fits(estimate(), 'standard')).toBe(true)
  })

  it('suspects strangers only beyond what all gateways know of', () => {
    const room = roomOf()
    room.ledger.hold(estimate())
    room.ledger.hear(0, { ...NOTHING_IN_FLIGHT, sequences: 4 })
    room.ledger.report(0, { sequences: 7 })
    expect(room.ledger.strangerSequences).toBe(0)
    room.ledger.report(0, { sequences: 12 })
    expect(room.ledger.strangerSequences).toBe(5)
  })
})

const tenant = (id: string): Tenant =>
  ({
    id,
    orgId: id,
    orgWeight: undefined,
    weight: 1,
    slo: { ttftUs: 1e6, interTokenUs: 1e5, totalUs: 1e7 },
    allowance: {},
  }) as unknown as Tenant
const key = (tenantId: string): Key => ({ id: `${tenantId}-key`, tenantId, weight: 1, allowance: {} })

describe('a dispatcher with a part of a pool', () => {
  function offer(dispatcher: Dispatcher, tenantId: string, count: number, from = 0): void {
    for (let i = 0; i < count; i++)
      dispatcher.offer(0, {
        ticketId: `${tenantId}${from + i}`,
        poolId: 'pool',
        tenant: tenant(tenantId),
        key: key(tenantId),
        band: 'standard',
        bid: 0,
        estimate: estimate(),
        arrivedAt: 0,
        expiresAt: 1e9,
        isReady: true,
      })
  }

  /** Turns of each tenant out of `count`, one at a time. */
  function turns(dispatcher: Dispatcher, count: number): Map<string, number> {
    const had = new Map<string, number>()
    let effects = dispatcher.share(0, 'pool', shareOf({ sequences: 1, kvTokens: 1_000 }, { factors: FACTORS }))
    for (let i = 0; i < count; i++) {
      for (const effect of effects) {
        if (effect.kind !== 'granted') continue
        const who = effect.ticketId.slice(0, 1)
        // The first turns are paid from credit that was given by the weights of before.
        if (i >= 60) had.set(who, (had.get(who) ?? 0) + 1)
        effects = dispatcher.release(0, effect.lease.id, { cost: 100, ending: 'finished', firstTokenUs: 1 })
        break
      }
    }
    return had
  }

  const FACTORS = { ...NO_FACTORS, tenants: new Map([['a', 0.25]]) }
  const dispatcherOf = () => {
    const dispatcher = new Dispatcher()
    dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: 8 }), kvTokensMax: 1_000 })
    return dispatcher
  }

  it('gives turns by scaled weights, to lanes that were there and to those born later', () => {
    const there = dispatcherOf()
    there.share(0, 'pool', shareOf({ sequences: 0, kvTokens: 0 }))
    offer(there, 'a', 150)
    offer(there, 'b', 150)
    const had = turns(there, 160)
    expect((had.get('b') ?? 0) / (had.get('a') ?? 1)).toBeCloseTo(4, 0)
    there.assertInvariants()

    const later = dispatcherOf()
    later.share(0, 'pool', shareOf({ sequences: 0, kvTokens: 0 }, { factors: FACTORS }))
    offer(later, 'a', 150)
    offer(later, 'b', 150)
    const born = turns(later, 160)
    expect((born.get('b') ?? 0) / (born.get('a') ?? 1)).toBeCloseTo(4, 0)
    later.assertInvariants()
  })

  it('keeps the contract\u2019s weights apart', () => {
    const dispatcher = dispatcherOf()
    offer(dispatcher, 'a', 20)
    dispatcher.share(0, 'pool', shareOf({ sequences: 0, kvTokens: 0 }, { factors: FACTORS }))
    expect(dispatcher.figuresOf('pool')?.lanes[0]).toMatchObject({ tenantId: 'a', tenantWeight: 1, keyWeight: 1 })
    const path = {
      org: { id: 'a', weight: undefined },
      tenant: { id: 'a', weight: 1 },
      key: { id: 'a-key', weight: 1 },
    }
    expect(dispatcher.scaledShare('pool', path).tenant.weight).toBe(0.25)
    dispatcher.share(0, 'pool', shareOf({ sequences: 0, kvTokens: 0 }))
    expect(dispatcher.scaledShare('pool', path).tenant.weight).toBe(1)
  })

  it('counts replicas by its part of them, and on a least part', () => {
    const dispatcher = dispatcherOf()
    expect(dispatcher.poolFacts('pool')?.replicaParts).toBe(1)
    dispatcher.share(0, 'pool', shareOf({ sequences: 2, kvTokens: 1_000 }))
    expect(dispatcher.poolFacts('pool')?.replicaParts).toBe(0.25)
    dispatcher.share(0, 'pool', shareOf({ sequences: 0, kvTokens: 0 }, { partMin: 0.125 }))
    expect(dispatcher.poolFacts('pool')?.replicaParts).toBe(0.125)
  })
})
