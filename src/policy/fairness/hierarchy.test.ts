import { describe, expect, test } from 'vitest'
import { makeEstimate } from '../../../test/support/demand.ts'
import type { Band } from '../../domain/tenant.ts'
import type { Fairness, FairnessName } from './fairness.ts'
import { Lane, Waiter } from './lane.ts'
import { FAIRNESS_NAMES, makeFairness } from './make-fairness.ts'

interface Place {
  readonly org: string
  readonly tenant: string
  readonly key: string
  readonly tenantWeight?: number
  readonly keyWeight?: number
  readonly band?: Band
}

/** A lane that never runs empty, in an order of turns. */
function laneIn(order: Fairness, place: Place): Lane {
  const { org, tenant, key, tenantWeight = 1, keyWeight = 1, band = 'standard' } = place
  const lane = new Lane({ poolId: 'p', orgId: org, tenantId: tenant, keyId: key, tenantWeight, keyWeight, band })
  const facts = { ticketId: key, estimate: makeEstimate(1, 1), bid: 0, arrivedAt: 0, expiresAt: 1e15, isReady: true }
  lane.add(new Waiter(facts, { lane, isAgain: false, sequence: 0, agingUsPerBid: 1 }))
  order.attach(lane)
  order.enter(lane)
  return lane
}

/** Gives turns until so much cost is served; returns each lane's part in percent, by key. */
function serve(order: Fairness, total: number, costOf: (lane: Lane) => number = () => 100): Record<string, number> {
  const served = new Map<string, number>()
  for (let done = 0; done < total; ) {
    const lane = order.next() as Lane
    const cost = costOf(lane)
    order.takeTurn(lane, cost)
    served.set(lane.keyId, (served.get(lane.keyId) ?? 0) + cost)
    done += cost
  }
  order.assertInvariants()
  return Object.fromEntries([...served].map(([key, cost]) => [key, Math.round((100 * cost) / total)]))
}

const SHARING: readonly FairnessName[] = ['deficit-round-robin', 'weighted-fair-queueing', 'virtual-token-counter']

describe.each(SHARING)('hierarchy with %s', (name) => {
  test('orgs share the pool by weight, tenants their org, keys their tenant', () => {
    const order = makeFairness(name)
    order.reweigh({ kind: 'org', orgId: 'A', weight: 1 })
    order.reweigh({ kind: 'org', orgId: 'B', weight: 4 })
    laneIn(order, { org: 'A', tenant: 'a1', key: 'a1-k1' })
    laneIn(order, { org: 'A', tenant: 'a2', key: 'a2-k1' })
    laneIn(order, { org: 'B', tenant: 'b1', key: 'b1-k1', keyWeight: 2 })
    laneIn(order, { org: 'B', tenant: 'b1', key: 'b1-k2', keyWeight: 1 })
    const costOf = (lane: Lane): number => (lane.keyId === 'a1-k1' ? 700 : 100)
    expect(serve(order, 1e6, costOf)).toEqual({ 'a1-k1': 10, 'a2-k1': 10, 'b1-k1': 53, 'b1-k2': 27 })
  })

  test('without weights of their own, orgs weigh what their active tenants weigh', () => {
    const order = makeFairness(name)
    laneIn(order, { org: 'A', tenant: 'a1', key: 'a1' })
    const second = laneIn(order, { org: 'A', tenant: 'a2', key: 'a2', tenantWeight: 2 })
    laneIn(order, { org: 'B', tenant: 'b1', key: 'b1' })
    expect(serve(order, 1e6)).toEqual({ a1: 25, a2: 50, b1: 25 })
    order.leave(second)
    expect(serve(order, 1e6)).toEqual({ a1: 50, b1: 50 })
  })

  test.each([1e-320, 1e-30, 1e-9])('a share of weight %d waits, and holds up nobody', (tenantWeight) => {
    const order = makeFairness(name)
    order.reweigh({ kind: 'org', orgId: 'A', weight: 1 })
    const tiny = laneIn(order, { org: 'A', tenant: 'tiny', key: 'tiny', tenantWeight, keyWeight: tenantWeight })
    const full = laneIn(order, { org: 'A', tenant: 'full', key: 'full' })
    laneIn(order, { org: 'B', tenant: 'b', key: 'b' })
    expect(serve(order, 1e5)).toMatchObject({ full: 50, b: 50 })
    order.leave(full)
    expect(serve(order, 1e5)).toEqual({ tiny: 50, b: 50 })
    order.enter(full)
    expect(serve(order, 1e5)).toMatchObject({ full: 50, b: 50 })
    order.leave(tiny)
    laneIn(order, { org: 'A', tenant: 'late', key: 'late' })
    expect(serve(order, 1e5)).toEqual({ full: 25, late: 25, b: 50 })
  })

  test('a thousand keys do not make a tenant heavier', () => {
    const order = makeFairness(name)
    for (let i = 0; i < 1_000; i++) laneIn(order, { org: 'a', tenant: 'a', key: `a${i}` })
    laneIn(order, { org: 'b', tenant: 'b', key: 'b' })
    expect(serve(order, 1e6)['b']).toBe(50)
  })

  test('inside a tenant interactive goes before standard; the other tenants do not notice', () => {
    const order = makeFairness(name)
    laneIn(order, { org: 'a', tenant: 'a', key: 'a-standard' })
    const urgent = laneIn(order, { org: 'a', tenant: 'a', key: 'a-urgent', band: 'interactive' })
    laneIn(order, { org: 'b', tenant: 'b', key: 'b' })
    expect(serve(order, 1e6)).toEqual({ 'a-urgent': 50, b: 50 })
    order.leave(urgent)
    expect(serve(order, 1e6)).toEqual({ 'a-standard': 50, b: 50 })
  })

  test('weights change while it runs, for keys, tenants and orgs', () => {
    const order = makeFairness(name)
    laneIn(order, { org: 'A', tenant: 'a', key: 'a' })
    laneIn(order, { org: 'B', tenant: 'b', key: 'b1' })
    laneIn(order, { org: 'B', tenant: 'b', key: 'b2' })
    expect(serve(order, 1e6)).toEqual({ a: 50, b1: 25, b2: 25 })
    order.reweigh({ kind: 'tenant', tenantId: 'b', orgId: 'B', weight: 4 })
    expect(serve(order, 1e6)).toEqual({ a: 20, b1: 40, b2: 40 })
    order.reweigh({ kind: 'key', keyId: 'b2', weight: 3 })
    expect(serve(order, 1e6)).toEqual({ a: 20, b1: 20, b2: 60 })
    order.reweigh({ kind: 'org', orgId: 'A', weight: 4 })
    expect(serve(order, 1e6)).toEqual({ a: 50, b1: 13, b2: 38 })
    order.reweigh({ kind: 'org', orgId: 'A', weight: undefined })
    expect(serve(order, 1e6)).toEqual({ a: 20, b1: 20, b2: 60 })
  })

  test('a tenant moves to another org with what it has queued', () => {
    const order = makeFairness(name)
    order.reweigh({ kind: 'org', orgId: 'A', weight: 1 })
    order.reweigh({ kind: 'org', orgId: 'B', weight: 1 })
    laneIn(order, { org: 'A', tenant: 'a', key: 'a' })
    laneIn(order, { org: 'B', tenant: 'b', key: 'b' })
    laneIn(order, { org: 'B', tenant: 'c', key: 'c' })
    expect(serve(order, 1e6)).toEqual({ a: 50, b: 25, c: 25 })
    order.reweigh({ kind: 'tenant', tenantId: 'c', orgId: 'A', weight: 1 })
    expect(serve(order, 1e6)).toEqual({ a: 25, b: 50, c: 25 })
    order.reweigh({ kind: 'tenant', tenantId: 'b', orgId: 'A', weight: 2 })
    expect(serve(order, 1e6)).toEqual({ a: 25, b: 50, c: 25 })
  })

  test('a lane is forgotten when it owes nothing, and kept while it does', () => {
    const order = makeFairness(name)
    laneIn(order, { org: 'a', tenant: 'a', key: 'a' })
    const gone = laneIn(order, { org: 'b', tenant: 'b', key: 'b' })
    order.takeTurn(gone, 10_000)
    order.leave(gone)
    expect(order.detach(gone)).toBe(false)
    serve(order, 100_000)
    expect(order.detach(gone)).toBe(true)
    laneIn(order, { org: 'b', tenant: 'b', key: 'b' })
    expect(serve(order, 1e6)).toEqual({ a: 50, b: 50 })
  })
})

describe('the orders kept for comparison', () => {
  test('round robin counts turns, not work', () => {
    const order = makeFairness('round-robin')
    laneIn(order, { org: 'a', tenant: 'a', key: 'a' })
    laneIn(order, { org: 'b', tenant: 'b', key: 'b', tenantWeight: 9 })
    expect(serve(order, 1.1e6, (lane) => (lane.keyId === 'a' ? 1_000 : 100))).toEqual({ a: 91, b: 9 })
  })

  test('every name makes the order of that name', () => {
    expect(FAIRNESS_NAMES.map((name) => makeFairness(name).name)).toEqual(FAIRNESS_NAMES)
  })
})
