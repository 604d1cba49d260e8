import { describe, expect, test } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import type { WhereKnown } from '../../domain/placement.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Effect } from './offer.ts'
import { type Ask, LeastLoaded } from './placer.ts'
import type { ReplicaRoom } from './replica-room.ts'

/** Tickets are called after the replica that knows their prompt: `a/1` is known at a, `-/1` nowhere. */
class ByName extends LeastLoaded {
  whereKnown(_now: number, { ticketId }: Ask, rooms: readonly ReplicaRoom[]): WhereKnown {
    const [home] = ticketId.split('/')
    if (home === '-') return 'nowhere'
    return rooms.some(({ replica }) => replica.id === home) ? 'here' : 'elsewhere'
  }
}

const SECOND = 1_000_000

class World {
  readonly dispatcher = new Dispatcher({ placer: new ByName() })
  readonly granted: string[] = []
  readonly #leases = new Map<string, number>()
  now = 0

  /** Each replica has one slot, and all are taken. */
  constructor(replicaIds: readonly string[]) {
    for (const id of replicaIds) {
      const replica = { id, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
      this.dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: 1 }) })
    }
    for (const id of replicaIds) this.offer(`-/busy-${id}`)
    this.granted.length = 0
  }

  offer(ticketId: string, { tenantId = 't', waitS = 100, hasName = true } = {}): void {
    const tenant = makeTenant(tenantId)
    const times = { arrivedAt: this.now, expiresAt: this.now + waitS * SECOND }
    const facts = { ticketId, poolId: 'pool', tenant, key: makeKey(`${tenantId}-key`, tenantId) }
    const estimate = makeEstimate(100, 10)
    const name = hasName ? { prefixHashes: [1, 2] } : {}
    const how = { band: 'interactive', bid: 0, isReady: true, ...name } as const
    this.#note(this.dispatcher.offer(this.now, { ...facts, ...times, ...how, estimate }).effects)
  }

  /** What the replica does is done: it has room for one. */
  free(replicaId: string): void {
    const leaseId = this.#leases.get(replicaId) as number
    this.#leases.delete(replicaId)
    this.#note(this.dispatcher.release(this.now, leaseId, { cost: 140, ending: 'finished', firstTokenUs: 1_000 }))
  }

  #note(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'granted') continue
      this.granted.push(`${effect.ticketId} at ${effect.lease.replica.id}`)
      this.#leases.set(effect.lease.replica.id, effect.lease.id)
    }
    this.dispatcher.assertInvariants()
  }
}

describe('a replica with room that does not know the prompt whose turn it is', () => {
  test('goes to one of the same lane that it knows, and the other waits for its own', () => {
    const world = new World(['a', 'b'])
    for (const id of ['a/1', 'a/2', 'b/1', 'b/2']) world.offer(id)
    world.free('b')
    world.free('b')
    world.free('a')
    expect(world.granted).toEqual(['b/1 at b', 'b/2 at b', 'a/1 at a'])
  })

  test('then to one whose prompt nobody knows, which must be read somewhere', () => {
    const world = new World(['a', 'b'])
    for (const id of ['a/1', '-/1', 'a/2']) world.offer(id)
    world.free('b')
    expect(world.granted).toEqual(['-/1 at b'])
  })

  test('then to a lane behind, whose tenant is charged for it', () => {
    const world = new World(['a', 'b'])
    for (const id of ['a/1', 'a/2', 'a/3', 'a/4']) world.offer(id)
    for (const id of ['b/1', 'b/2', 'b/3']) world.offer(id, { tenantId: 'other' })
    world.free('b')
    world.free('b')
    world.free('a')
    // The other tenant has had two turns: the first has two in a row.
    world.free('a')
    expect(world.granted).toEqual(['b/1 at b', 'b/2 at b', 'a/1 at a', 'a/2 at a'])
  })

  test('stays idle for nobody: the head goes if there is nobody else (L6)', () => {
    const world = new World(['a', 'b'])
    for (const id of ['a/1', 'a/2']) world.offer(id)
    world.free('b')
    expect(world.granted).toEqual(['a/1 at b'])
  })

  test('lets sixteen by, and not one more', () => {
    const world = new World(['a', 'b'])
    world.offer('a/1')
    for (let i = 0; i < 20; i++) world.offer(`b/${i}`)
    for (let i = 0; i < 17; i++) world.free('b')
    expect(world.granted.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, i) => `b/${i} at b`))
    expect(world.granted[16]).toBe('a/1 at b')
  })

  test('lets nobody by in the last quarter of its time to wait', () => {
    const world = new World(['a', 'b'])
    world.offer('a/1', { waitS: 4 })
    world.offer('b/1')
    world.now = 3.1 * SECOND
    world.free('b')
    expect(world.granted).toEqual(['a/1 at b'])
  })

  test('is nothing to a prompt without a name: first come, first served', () => {
    const world = new World(['a', 'b'])
    world.offer('a/1', { hasName: false })
    world.offer('b/1')
    world.free('b')
    expect(world.granted).toEqual(['a/1 at b'])
  })

  test('looks at a bounded number of tickets', () => {
    const world = new World(['a', 'b'])
    for (let i = 0; i < 100; i++) world.offer(`a/${i}`)
    world.offer('b/1')
    world.free('b')
    expect(world.granted).toEqual(['a/0 at b'])
  })
})
