import { describe, expect, it } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { Rng } from '../../base/rng.ts'
import type { Band } from '../../domain/tenant.ts'
import { FixedLimit } from '../limits/fixed.ts'
import type { Limit } from '../limits/limit.ts'
import { ReportedLimit } from '../limits/reported.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect } from './offer.ts'

const CANCELLED = { cost: 0, ending: 'cancelled', firstTokenUs: undefined } as const

function given(limits: readonly Limit[], kvTokensMax = 1e9) {
  const dispatcher = new Dispatcher()
  limits.forEach((limit, index) => {
    const replica = { id: `r${index}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    dispatcher.addReplica(0, { replica, limit, kvTokensMax })
  })
  /** By ticket. */
  const leases = new Map<string, number>()
  const note = (effects: readonly Effect[]): void => {
    for (const effect of effects) if (effect.kind === 'granted') leases.set(effect.ticketId, effect.lease.id)
    dispatcher.assertInvariants()
  }
  return {
    dispatcher,
    leases,
    offer: (ticketId: string, band: Band, estimate = makeEstimate(100, 100)): void => {
      const who = { tenant: makeTenant('t'), key: makeKey('t-key', 't'), band, bid: 0 }
      const offer = { ticketId, poolId: 'pool', ...who, estimate, arrivedAt: 0, expiresAt: 1e12, isReady: true }
      note(dispatcher.offer(0, offer).effects)
    },
    release: (leaseId: number): void => note(dispatcher.release(0, leaseId, CANCELLED)),
    begin: (leaseId: number): void => note(dispatcher.begin(0, leaseId)),
  }
}

const fixed = (sequencesMax: number): Limit => new FixedLimit({ sequencesMax })
const always = (): number => 10

describe('who gives way', () => {
  it('the youngest, and no more than are needed', () => {
    const { dispatcher, leases, offer } = given([fixed(3)])
    for (const id of ['a', 'b', 'c']) offer(id, 'offline')
    offer('online', 'standard')
    expect(dispatcher.callOff('online', always, 1_000)).toEqual({ leaseIds: [leases.get('c')], tokens: 10 })
  })

  it('as many as a large request needs, at one replica', () => {
    const { dispatcher, leases, offer } = given([fixed(9)], 1_000)
    for (const id of ['a', 'b', 'c', 'd']) offer(id, 'offline', makeEstimate(100, 100))
    offer('online', 'standard', makeEstimate(500, 100))
    const choice = dispatcher.callOff('online', always, 1_000)
    expect(choice?.leaseIds.length).toBeGreaterThan(1)
    expect(choice?.leaseIds[0]).toBe(leases.get('d'))
  })

  it('others that are offline do not take their places while they go, one by one', () => {
    const { dispatcher, leases, offer, release } = given([fixed(9)], 1_000)
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) offer(id, 'offline', makeEstimate(100, 100))
    expect([...leases.keys()]).toEqual(['a', 'b', 'c', 'd', 'e'])
    offer('online', 'standard', makeEstimate(500, 100))
    const { leaseIds } = dispatcher.callOff('online', always, 1_000) ?? { leaseIds: [] }
    expect(leaseIds).toHaveLength(3)
    for (const leaseId of leaseIds) release(leaseId)
    expect([...leases.keys()].slice(5)).toEqual(['online'])
  })

  it('those at the replica where least is wasted', () => {
    const { dispatcher, leases, offer } = given([fixed(1), fixed(1)])
    for (const id of ['a', 'b']) offer(id, 'offline')
    offer('online', 'standard')
    const wasteOf = (leaseId: number): number => (leaseId === leases.get('a') ? 5 : 50)
    expect(dispatcher.callOff('online', wasteOf, 1_000)?.leaseIds).toEqual([leases.get('a')])
  })

  it('nobody who may not, nobody beyond what may be wasted, and nobody online', () => {
    const { dispatcher, leases, offer } = given([fixed(3)])
    offer('online-1', 'standard')
    offer('a', 'offline')
    offer('b', 'offline')
    offer('online-2', 'standard')
    const onlyA = (leaseId: number): number | undefined => (leaseId === leases.get('a') ? 10 : undefined)
    expect(dispatcher.callOff('online-2', onlyA, 10)?.leaseIds).toEqual([leases.get('a')])
    expect(dispatcher.callOff('online-2', () => undefined, 1_000)).toBeUndefined()
    expect(dispatcher.callOff('online-2', always, 9)).toBeUndefined()
    const busy = given([fixed(1)])
    busy.offer('online-1', 'standard')
    busy.offer('online-2', 'standard')
    expect(busy.dispatcher.callOff('online-2', always, 1_000)).toBeUndefined()
  })

  it('nobody for an offline ticket, or one that does not wait', () => {
    const { dispatcher, offer } = given([fixed(1)])
    offer('a', 'offline')
    offer('b', 'offline')
    expect(dispatcher.callOff('b', always, 1_000)).toBeUndefined()
    expect(dispatcher.callOff('a', always, 1_000)).toBeUndefined()
  })
})

describe('when those chosen have gone', () => {
  const model = { meanTokenUs: (sequences: number, contextTokens: number) => 1_000 * sequences + contextTokens }
  const promise = { ttftUs: 1_000_000, interTokenUs: 20_000 }
  const reported = (): Limit => new ReportedLimit({ model, promise, options: { aimRatio: 1 } })

  it.each([
    ['a fixed limit', () => fixed(6), false],
    ['a step model', reported, false],
    ['a part of a shared replica', () => fixed(12), true],
  ] as const)('the ticket has its turn, with %s', (_name, limitOf, isShared) => {
    let chosenCount = 0
    for (let seed = 1; seed <= 100; seed++) {
      const rng = Rng.stream(seed, 'who-gives-way')
      const estimate = () => makeEstimate(10 + rng.below(900), 10 + rng.below(400))
      const world = given([limitOf(), limitOf()], 8_000)
      const capacity = { sequences: 6, kvTokens: 4_000 }
      if (isShared) for (const id of ['r0', 'r1']) world.dispatcher.replicaChanged(0, id, { capacity })
      for (let n = 0; n < 20; n++) world.offer(`x${n}`, rng.below(8) === 0 ? 'standard' : 'offline', estimate())
      for (const leaseId of world.leases.values()) if (rng.below(2) === 0) world.begin(leaseId)
      // One at a time: what frees room for one would else be another's.
      if ((world.dispatcher.laneOf('pool', 't-key', 'standard')?.count ?? 0) > 0) continue
      world.offer('online', 'interactive', estimate())
      const choice = world.dispatcher.callOff('online', always, 1_000)
      if (choice === undefined) continue
      chosenCount++
      expect(world.leases.has('online')).toBe(false)
      for (const leaseId of choice.leaseIds) world.release(leaseId)
      expect(world.leases.has('online')).toBe(true)
    }
    expect(chosenCount).toBeGreaterThan(5)
  })
})
