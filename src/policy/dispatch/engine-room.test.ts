import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { NO_FACTORS, NOTHING_IN_FLIGHT } from '../../domain/pool-share.ts'
import { BANDS, type Band } from '../../domain/tenant.ts'
import { FixedLimit } from '../limits/fixed.ts'
import type { DispatcherOptions } from './dispatch-options.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect, Offer } from './offer.ts'

/** Engines that several pools name: `a/e` is the replica of pool a at the engine e. */
interface Wanted {
  readonly prompt?: number
  readonly output?: number
  readonly band?: Band
  readonly tenant?: string
}

function given(replicas: readonly string[], options: Partial<DispatcherOptions> = {}) {
  const dispatcher = new Dispatcher({ options })
  const held = new Map<string, { readonly leaseId: number; readonly replicaId: string; readonly cost: number }>()
  const offers = new Map<string, Offer>()
  let now = 0
  const note = (effects: readonly Effect[]): string[] => {
    dispatcher.assertInvariants()
    return effects.flatMap((effect) => {
      if (effect.kind !== 'granted') return [`${effect.ticketId} ${effect.kind}`]
      const { id: leaseId, replica } = effect.lease
      held.set(effect.ticketId, {
        leaseId,
        replicaId: replica.id,
        cost: offers.get(effect.ticketId)?.estimate.cost ?? 0,
      })
      return [`${effect.ticketId} at ${replica.id}`]
    })
  }
  const add = (id: string, sequencesMax = 2, kvTokensMax = 100_000): string[] => {
    const [poolId = '', engine = ''] = id.split('/')
    const replica = { id, poolId, model: poolId, releaseId: `${poolId}@1`, region: '' }
    const named = engine.startsWith('own') ? replica : { ...replica, engineId: engine }
    return note(dispatcher.addReplica(now, { replica: named, limit: new FixedLimit({ sequencesMax }), kvTokensMax }))
  }
  for (const id of replicas) add(id)
  let ticketCount = 0
  return {
    dispatcher,
    held,
    note,
    add,
    pass: (us: number) => (now += us),
    offer: (poolId: string, { prompt = 100, output = 100, band = 'standard', tenant = 't' }: Wanted = {}): string[] => {
      const ticketId = `${poolId}${ticketCount++}`
      const who = { tenant: makeTenant(tenant), key: makeKey(`${tenant}-key`, tenant), band }
      const when = { arrivedAt: now, expiresAt: Number.POSITIVE_INFINITY, isReady: true, bid: 0 }
      const offer: Offer = { ticketId, poolId, ...who, ...when, estimate: makeEstimate(prompt, output) }
      offers.set(ticketId, offer)
      return note(dispatcher.offer(now, offer).effects)
    },
    release: (ticketId: string): string[] => {
      const { leaseId, cost } = held.get(ticketId) as { leaseId: number; cost: number }
      held.delete(ticketId)
      return note(dispatcher.release(now, leaseId, { cost, ending: 'finished', firstTokenUs: 5 }))
    },
  }
}

describe('an engine that two pools name', () => {
  it('is filled once, and a place that one pool frees goes to the other', () => {
    const { offer, release, dispatcher } = given(['a/e', 'b/e'])
    expect([...offer('a'), ...offer('b')]).toEqual(['a0 at a/e', 'b1 at b/e'])
    expect([...offer('b'), ...offer('b')]).toEqual([])
    expect(release('a0')).toEqual(['b2 at b/e'])
    expect(dispatcher.heldAt('a/e')).toBe(0)
    expect(dispatcher.heldAt('b/e')).toBe(2)
    expect(dispatcher.loadOf('a/e')?.sequences).toBe(2)
    expect(dispatcher.hasIdleReplica('a', makeEstimate(1, 1))).toBe(false)
    expect([...release('b1'), ...release('b2'), ...release('b3')]).toEqual(['b3 at b/e'])
    expect(dispatcher.hasIdleReplica('a', makeEstimate(1, 1))).toBe(true)
  })

  it('has one memory', () => {
    const { offer, release, add } = given([])
    add('a/e', 9, 1_000)
    add('b/e', 9, 1_000)
    expect(offer('a', { prompt: 700 })).toEqual(['a0 at a/e'])
    expect(offer('b', { prompt: 700 })).toEqual([])
    expect(offer('b', { prompt: 50, output: 50, tenant: 'other' })).toEqual(['b2 at b/e'])
    expect(release('a0')).toEqual(['b1 at b/e'])
  })

  it('has one limit, which learns from the answers of both', () => {
    const { dispatcher, offer } = given(['a/e'])
    const limit = new FixedLimit({ sequencesMax: 50 })
    const replica = { id: 'b/e', poolId: 'b', model: 'b', releaseId: 'b@1', region: '', engineId: 'e' }
    dispatcher.addReplica(0, { replica, limit })
    for (const poolId of ['a', 'b', 'b', 'b']) offer(poolId)
    expect(dispatcher.loadOf('b/e')?.sequences).toBe(2)
    expect(dispatcher.view().pools.map(({ replicas }) => replicas[0]?.limit.sequencesMax)).toEqual([2, 2])
  })

  it('counts what runs already when the second pool comes, and what still runs when a pool goes', () => {
    const { offer, release, add, dispatcher, note } = given(['a/e'])
    expect([...offer('a'), ...offer('a')]).toEqual(['a0 at a/e', 'a1 at a/e'])
    add('b/e')
    expect(offer('b')).toEqual([])
    expect(note(dispatcher.removeReplica(0, 'a/e'))).toEqual([])
    expect(release('a1')).toEqual(['b2 at b/e'])
    expect(offer('b')).toEqual([])
    expect(release('a0')).toEqual(['b3 at b/e'])
    expect(dispatcher.loadOf('b/e')?.sequences).toBe(2)
  })

  it('is on trial once: health allows a number of turns for all pools', () => {
    const { offer, dispatcher, release } = given(['a/e', 'b/e'])
    for (const id of ['a/e', 'b/e']) dispatcher.replicaChanged(0, id, { allowance: 1 })
    expect([...offer('a'), ...offer('b')]).toEqual(['a0 at a/e'])
    expect(release('a0')).toEqual(['b1 at b/e'])
  })

  it('counts what other gateways have there for either pool, and its own slots for each pool', () => {
    const { offer, dispatcher } = given(['a/e', 'b/e'])
    const share = (poolId: string, slots: number, sequences: number): void => {
      const allowance = { sequences: slots, kvTokens: 100_000 }
      const rooms = new Map([[`${poolId}/e`, { allowance, others: { ...NOTHING_IN_FLIGHT, sequences } }]])
      dispatcher.share(0, poolId, { rooms, factors: NO_FACTORS, partMin: 0 })
    }
    share('a', 2, 0)
    share('b', 2, 1)
    expect(dispatcher.loadOf('a/e')?.sequences).toBe(1)
    expect([...offer('a'), ...offer('a')]).toEqual(['a0 at a/e'])
    share('a', 2, 1)
    expect(dispatcher.loadOf('b/e')?.sequences).toBe(3)
    share('a', 1, 0)
    share('b', 2, 0)
    // The one slot of a is used, which leaves one of the two places to b.
    expect(dispatcher.loadOf('b/e')?.sequences).toBe(1)
    expect([...offer('b'), ...offer('b')]).toEqual(['b2 at b/e'])
  })

  it('tells strangers from what the other pool holds', () => {
    const { offer, dispatcher } = given(['a/e', 'b/e'])
    offer('a')
    dispatcher.report(0, 'b/e', { sequences: 1 })
    expect(dispatcher.loadOf('b/e')?.sequences).toBe(1)
    dispatcher.report(0, 'a/e', { sequences: 4 })
    expect(dispatcher.loadOf('b/e')?.sequences).toBe(4)
  })

  it('gives offline work of either pool what the other work of both leaves over', () => {
    const { offer, release } = given(['a/e', 'b/e'])
    offer('a')
    offer('a')
    offer('a', { band: 'offline' })
    offer('b')
    expect(release('a0')).toEqual(['b3 at b/e'])
    expect(release('a1')).toEqual(['a2 at a/e'])
  })

  it('calls off offline turns of the one pool for a ticket of the other', () => {
    const { offer, dispatcher, held } = given(['a/e', 'b/e'])
    offer('a', { band: 'offline' })
    offer('a', { band: 'offline' })
    offer('b')
    const called = dispatcher.callOff('b2', () => 10, 1_000)
    expect(called?.leaseIds).toEqual([held.get('a1')?.leaseId])
  })

  it('is kept free for a big head of the one pool while the other has small ones without end', () => {
    const { offer, release, add, held } = given([], { skipsMax: 4 })
    add('a/e', 8, 1_000)
    add('b/e', 8, 1_000)
    for (let n = 0; n < 6; n++) offer('a')
    expect(offer('b', { prompt: 800 })).toEqual([])
    let turns = 0
    for (let n = 0; n < 40 && !held.has('b6'); n++) {
      offer('a')
      turns += release([...held.keys()][0] as string).filter((said) => said.startsWith('a')).length
    }
    expect(held.has('b6')).toBe(true)
    expect(turns).toBeLessThanOrEqual(6)
  })

  it('leaves a pool with an engine of its own that one, where the other pool has no other', () => {
    const { offer, release, held } = given(['a/own', 'a/e', 'b/e'])
    for (let n = 0; n < 60; n++) {
      offer('a')
      offer('b')
    }
    for (let n = 0; n < 40; n++) release([...held.keys()][0] as string)
    const at = [...held.values()].map(({ replicaId }) => replicaId)
    expect(at.filter((id) => id === 'b/e')).toHaveLength(2)
    expect(at.filter((id) => id === 'a/own')).toHaveLength(2)
  })
})

const cost = fc.constantFrom(10, 100, 400, 2_000)
const LARGEST_COST = makeEstimate(2_000, 2_000).cost

describe('pools that have an engine in common', () => {
  it('are charged the same while both wait, whatever their requests cost', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(cost, cost), { minLength: 40, maxLength: 80 }), fc.nat(), (costs, seed) => {
        const { offer, release, held } = given(['a/e', 'b/e'])
        const charged: Record<string, number> = { a: 0, b: 0 }
        const granted = (said: readonly string[]): void => {
          for (const one of said) {
            const ticketId = one.split(' ')[0] as string
            charged[ticketId.slice(0, 1)]! += held.get(ticketId)?.cost ?? 0
          }
        }
        // The burst of a comes first, and fills the engine.
        for (const [a] of costs) granted(offer('a', { prompt: a, output: a }))
        for (const [, b] of costs) offer('b', { prompt: b, output: b })
        charged['b'] = charged['a']! - LARGEST_COST
        for (let n = 0; n < 20; n++) {
          granted(release([...held.keys()][(seed + n) % held.size] as string))
          expect(Math.abs(charged['a']! - charged['b']!)).toBeLessThanOrEqual(2 * LARGEST_COST)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('take turns again soon after one of them could not go for long', () => {
    const { offer, release, held, dispatcher } = given(['a/e', 'b/e'])
    dispatcher.replicaChanged(0, 'b/e', { isReady: false })
    for (let n = 0; n < 700; n++) offer('a')
    for (let n = 0; n < 300; n++) offer('b')
    for (let n = 0; n < 300; n++) release([...held.keys()][0] as string)
    dispatcher.replicaChanged(0, 'b/e', { isReady: true })
    let untilA = 0
    while (!release([...held.keys()][0] as string).some((said) => said.startsWith('a'))) untilA++
    // 65,536 of lag at 500 a turn.
    expect(untilA).toBeGreaterThan(1)
    expect(untilA).toBeLessThanOrEqual(135)
  })

  type Step =
    | { readonly kind: 'offer'; readonly pool: number; readonly size: number; readonly band: Band }
    | { readonly kind: 'release'; readonly which: number }
    | { readonly kind: 'replica'; readonly which: number; readonly change: number }
    | { readonly kind: 'report'; readonly which: number; readonly sequences: number }
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('offer' as const),
        pool: fc.nat(2),
        size: fc.constantFrom(10, 100, 500, 900),
        band: fc.constantFrom(...BANDS),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('release' as const), which: fc.nat(20) }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('replica' as const), which: fc.nat(4), change: fc.nat(4) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('report' as const), which: fc.nat(4), sequences: fc.nat(5) }),
    },
  )
  const REPLICAS = ['a/e', 'a/own', 'b/e', 'b/f', 'c/f'] as const

  it('keep every law after any sequence of events: no engine holds more than it may, and no place stays free', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), fc.integer({ min: 0, max: 4 }), (steps, skipsMax) => {
        const { offer, release, held, add, dispatcher, note, pass } = given([], { skipsMax })
        const present = new Set<string>()
        const enter = (id: string): void => {
          present.add(id)
          add(id, 3, 1_000)
        }
        REPLICAS.forEach(enter)
        for (const one of steps) {
          pass(7)
          if (one.kind === 'offer') offer('abc'[one.pool] as string, { prompt: one.size, output: 10, band: one.band })
          else if (one.kind === 'release') {
            const ids = [...held.keys()]
            if (ids.length > 0) release(ids[one.which % ids.length] as string)
          } else {
            const id = REPLICAS[one.which] as string
            if (one.kind === 'report') note(dispatcher.report(0, id, { sequences: one.sequences }))
            else if (!present.has(id)) enter(id)
            else if (one.change === 0) {
              present.delete(id)
              note(dispatcher.removeReplica(0, id))
            } else note(dispatcher.replicaChanged(0, id, { isReady: one.change > 1, allowance: one.change + 1 }))
          }
          for (const engine of ['e', 'f']) {
            const own = REPLICAS.filter((id) => id.endsWith(`/${engine}`) && present.has(id))
            const runs = own.reduce((sum, id) => sum + dispatcher.heldAt(id), 0)
            expect(runs).toBeLessThanOrEqual(3)
          }
        }
      }),
      { numRuns: 200 },
    )
  })
})
