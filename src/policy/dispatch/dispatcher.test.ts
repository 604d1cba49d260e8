import { describe, expect, test } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import type { Band } from '../../domain/tenant.ts'
import { FixedLimit } from '../limits/fixed.ts'
import type { DispatcherOptions } from './dispatch-options.ts'
import { Dispatcher, type DispatcherParts } from './dispatcher.ts'
import type { Effect, Measured, Offer, Offered } from './offer.ts'
import type { Placer } from './placer.ts'

interface Given {
  readonly slots?: readonly number[]
  readonly kvTokensMax?: number
  readonly options?: Partial<DispatcherOptions>
  readonly parts?: DispatcherParts
}

const FINISHED: Measured = { cost: 500, ending: 'finished', firstTokenUs: 100_000 }

function given({ slots = [1], kvTokensMax, options = {}, parts = {} }: Given = {}) {
  const dispatcher = new Dispatcher({ ...parts, options })
  dispatcher.addPool('pool')
  slots.forEach((sequencesMax, index) => {
    const replica = { id: `r${index}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    const limit = new FixedLimit({ sequencesMax })
    dispatcher.addReplica(0, { replica, limit, ...(kvTokensMax === undefined ? {} : { kvTokensMax }) })
  })
  const leases = new Map<string, number>()
  const note = (effects: readonly Effect[]): string[] => {
    dispatcher.assertInvariants()
    return effects.map((effect) => {
      if (effect.kind === 'granted') leases.set(effect.ticketId, effect.lease.id)
      return effect.kind === 'granted'
        ? `${effect.ticketId} granted ${effect.lease.replica.id}`
        : `${effect.ticketId} ${effect.kind}`
    })
  }
  const asOffer = (ticketId: string, over: Partial<Offer> & { readonly band?: Band } = {}): Offer => {
    const tenantId = ticketId.slice(0, 1)
    const defaults = { bid: 0, estimate: makeEstimate(100, 100), arrivedAt: 0, expiresAt: 1e12, isReady: true }
    const who = { tenant: makeTenant(tenantId), key: makeKey(`${tenantId}-key`, tenantId), band: 'standard' as const }
    return { ticketId, poolId: 'pool', ...who, ...defaults, ...over }
  }
  const tell = (offered: Offered): string[] =>
    offered.kind === 'refused' ? [`refused ${offered.code}`, ...note(offered.effects)] : note(offered.effects)
  return {
    dispatcher,
    offer: (ticketId: string, over?: Partial<Offer>, now = 0) => tell(dispatcher.offer(now, asOffer(ticketId, over))),
    offerAgain: (ticketId: string, over?: Partial<Offer>, now = 0) =>
      tell(dispatcher.offerAgain(now, asOffer(ticketId, over))),
    ready: (ticketId: string, now = 0) => note(dispatcher.ready(now, ticketId)),
    withdraw: (ticketId: string, now = 0) => note(dispatcher.withdraw(now, ticketId)),
    release: (ticketId: string, measured = FINISHED, now = 0) => {
      const leaseId = leases.get(ticketId) as number
      leases.delete(ticketId)
      return note(dispatcher.release(now, leaseId, measured))
    },
    progress: (ticketId: string, tokens: number) =>
      note(dispatcher.progress(0, leases.get(ticketId) as number, tokens)),
    wake: (now: number) => note(dispatcher.onWakeup(now)),
    note,
  }
}

describe('turns', () => {
  test('what fits goes at once, the rest when a lease comes back, sharing between tenants', () => {
    const { offer, release } = given({ slots: [2] })
    expect(offer('a1')).toEqual(['a1 granted r0'])
    expect(offer('a2')).toEqual(['a2 granted r0'])
    expect(offer('a3')).toEqual([])
    expect(offer('b1')).toEqual([])
    expect(release('a1')).toEqual(['a3 granted r0'])
    expect(offer('a4')).toEqual([])
    expect(release('a2')).toEqual(['b1 granted r0'])
    expect(release('b1')).toEqual(['a4 granted r0'])
  })

  test('a lease is returned once', () => {
    const { offer, release, dispatcher } = given()
    offer('a1')
    release('a1')
    expect(() => dispatcher.release(0, 1, FINISHED)).toThrow('L2')
  })

  test('a ticket that is not ready holds its place and goes when it is', () => {
    const { offer, release, ready } = given()
    offer('a0')
    offer('a1', { isReady: false, arrivedAt: 1 })
    offer('a2', { arrivedAt: 2 })
    expect(release('a0')).toEqual(['a2 granted r0'])
    expect(ready('a1')).toEqual([])
    offer('a3', { arrivedAt: 3 })
    expect(release('a2')).toEqual(['a1 granted r0'])
  })

  test('inside a tenant interactive goes first; offline only when nobody else can go', () => {
    const { offer, release } = given()
    offer('a0')
    offer('a1', { band: 'offline' })
    offer('a2', { band: 'standard' })
    offer('a3', { band: 'interactive' })
    offer('b1', { band: 'standard' })
    expect(release('a0')).toEqual(['a3 granted r0'])
    expect(release('a3')).toEqual(['b1 granted r0'])
    expect(release('b1')).toEqual(['a2 granted r0'])
    expect(release('a2')).toEqual(['a1 granted r0'])
  })

  test('a higher bid goes first, until the lower one has aged enough', () => {
    const { offer, release } = given()
    offer('a0')
    offer('a1', { bid: 0, arrivedAt: 1_000_000 })
    offer('a2', { bid: 3, arrivedAt: 3_900_000 })
    offer('a3', { bid: 3, arrivedAt: 4_100_000 })
    expect(release('a0')).toEqual(['a2 granted r0'])
    expect(release('a2')).toEqual(['a1 granted r0'])
    expect(release('a1')).toEqual(['a3 granted r0'])
  })

  test('offered again, a ticket goes first and elsewhere, and its charge was refunded', () => {
    const { offer, offerAgain, release } = given({ slots: [1, 1] })
    offer('a1')
    offer('a2')
    offer('a3', { arrivedAt: 5 })
    expect(release('a1', { cost: 0, ending: 'refused', firstTokenUs: undefined })).toEqual(['a3 granted r0'])
    offer('a4', { arrivedAt: 0 })
    expect(offerAgain('a1', { arrivedAt: 1, avoidReplicaId: 'r0' })).toEqual([])
    offer('b1')
    expect(release('a3')).toEqual(['b1 granted r0'])
    expect(release('a2')).toEqual(['a1 granted r1'])
  })
})

describe('bounds', () => {
  test('expired tickets are dropped before they cost anything', () => {
    const { offer, release, wake, dispatcher } = given()
    offer('a0')
    offer('a1', { expiresAt: 100 })
    offer('a2', { expiresAt: 200 })
    expect(dispatcher.nextWakeupAt()).toBe(100)
    expect(release('a0', FINISHED, 150)).toEqual(['a1 expired', 'a2 granted r0'])
    offer('a3', { expiresAt: 300 })
    expect(wake(300)).toEqual(['a3 expired'])
    expect(dispatcher.nextWakeupAt()).toBeUndefined()
    expect(offer('a4', { expiresAt: 300 }, 300)).toEqual(['refused expired-on-arrival'])
  })

  test('a full lane refuses; a full queue takes from whoever has most per weight', () => {
    const lanes = { depthMax: 3, engineUsMax: 1e12, agingUsPerBid: 1e6 }
    const { offer } = given({ options: { lanes, queueRequestsMax: 4 } })
    offer('a0')
    for (const id of ['a1', 'a2', 'a3']) offer(id)
    expect(offer('a4')).toEqual(['refused lane-full'])
    expect(offer('b1')).toEqual([])
    expect(offer('c1')).toEqual(['a3 evicted'])
    expect(offer('a5')).toEqual(['refused queue-full'])
    // With b2 both would have two: no promise is broken for that.
    expect(offer('b2')).toEqual(['refused queue-full'])
    // Its own lower band yields before its interactive arrival is refused.
    expect(offer('a6', { band: 'interactive' })).toEqual(['a2 evicted'])
    expect(offer('a7', { band: 'interactive' })).toEqual(['a1 evicted'])
    expect(offer('a8', { band: 'interactive' })).toEqual(['refused queue-full'])
  })

  test('a lane is bounded in predicted work too, but lets one in', () => {
    const lanes = { depthMax: 100, engineUsMax: 1_000_000, agingUsPerBid: 1e6 }
    const { offer } = given({ options: { lanes } })
    offer('a0')
    expect(offer('a1', { estimate: makeEstimate(1, 1, { engineUs: 5e6 }) })).toEqual([])
    expect(offer('a2')).toEqual(['refused lane-work-full'])
  })

  test('what fits no replica is refused at once', () => {
    const { offer } = given({ kvTokensMax: 1_000 })
    expect(offer('a1', { estimate: makeEstimate(990, 20) })).toEqual(['refused fits-no-replica'])
    expect(offer('a2', { estimate: makeEstimate(980, 20) })).toEqual(['a2 granted r0'])
  })
})

describe('big heads', () => {
  test('a head that does not fit is passed over so often, then a replica is kept free for it', () => {
    const { offer, release, dispatcher } = given({ slots: [8, 8], kvTokensMax: 1_000, options: { skipsMax: 2 } })
    const small = { estimate: makeEstimate(200, 100) }
    offer('a1', small)
    offer('a2', small)
    offer('a3', small)
    offer('a4', small)
    offer('a5', small)
    offer('a6', small)
    expect(offer('b1', { estimate: makeEstimate(600, 200) })).toEqual([])
    offer('c1', small)
    expect(release('a1')).toEqual(['c1 granted r0'])
    offer('c2', small)
    expect(release('a2')).toEqual(['c2 granted r1'])
    expect(dispatcher.view().pools[0]?.keptReplicaIds).toEqual(['r0'])
    offer('c3', small)
    expect(release('a3')).toEqual([])
    expect(release('a4')).toEqual(['c3 granted r1'])
    expect(release('a5')).toEqual([])
    expect(release('c1')).toEqual(['b1 granted r0'])
    expect(dispatcher.view().pools[0]?.keptReplicaIds).toEqual([])
  })
})

describe('replicas', () => {
  test('tickets wait while there are none, and go when one comes, is ready, or gets an allowance', () => {
    const { offer, note, dispatcher } = given({ slots: [] })
    expect(offer('a1')).toEqual([])
    const replica = { id: 'x', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    const limit = new FixedLimit({ sequencesMax: 2 })
    expect(note(dispatcher.addReplica(0, { replica, limit, isReady: false }))).toEqual([])
    expect(note(dispatcher.replicaChanged(0, 'x', { isReady: true, allowance: 0 }))).toEqual([])
    expect(note(dispatcher.replicaChanged(0, 'x', { allowance: 1 }))).toEqual(['a1 granted x'])
    expect(offer('a2')).toEqual([])
    expect(note(dispatcher.removeReplica(0, 'x'))).toEqual([])
    expect(offer('a3')).toEqual([])
  })

  test('what an engine reports beyond our own closes room until the report lapses', () => {
    const { offer, note, dispatcher } = given({ slots: [2] })
    offer('a1')
    expect(note(dispatcher.report(0, 'r0', { sequences: 2, kvTokens: 0 }))).toEqual([])
    expect(offer('a2')).toEqual([])
    expect(dispatcher.nextWakeupAt()).toBe(2_000_000)
    expect(note(dispatcher.onWakeup(2_000_000))).toEqual(['a2 granted r0'])
  })
})

describe('a fleet that changes', () => {
  test('a pool goes when it is empty, and its lanes with it', () => {
    const { dispatcher, offer, release, note } = given()
    offer('a1')
    expect(() => dispatcher.removePool('pool')).toThrow('empty')
    note(dispatcher.removeReplica(0, 'r0'))
    expect(() => dispatcher.removePool('pool')).toThrow('empty')
    release('a1')
    dispatcher.removePool('pool')
    expect(dispatcher.view().pools).toEqual([])
    expect(offer('a2')).toEqual(['refused unknown-pool'])
    dispatcher.assertInvariants()
  })

  test('a place in lists is given to the next replica, the order of addition is not', () => {
    const seen = new Set<number>()
    const ordinals: number[] = []
    const choose: Placer['choose'] = (_now, _ask, rooms) => {
      for (const room of rooms) {
        seen.add(room.place)
        ordinals.push(room.ordinal)
      }
      return rooms[0]!
    }
    const { dispatcher, offer, release } = given({ parts: { placer: { because: 'a test', choose } } })
    for (let i = 1; i <= 50; i++) {
      const replica = { id: `r${i}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
      dispatcher.removeReplica(0, `r${i - 1}`)
      dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: 1 }) })
      offer(`a${i}`)
      release(`a${i}`)
    }
    expect([...seen]).toEqual([0])
    expect(ordinals.at(-1)).toBe(50)
  })
})
