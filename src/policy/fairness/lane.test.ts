import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeEstimate } from '../../../test/support/demand.ts'
import { LANE_DEFAULTS, Lane, type LaneOptions, Waiter } from './lane.ts'

const NAME = {
  poolId: 'pool',
  orgId: 'org',
  tenantId: 'tenant',
  tenantWeight: 1,
  keyId: 'key',
  keyWeight: 1,
  band: 'standard' as const,
}

interface Given {
  readonly id?: number
  readonly bid?: number
  readonly arrivedAt?: number
  readonly isReady?: boolean
  readonly isAgain?: boolean
  readonly output?: number
}

function waiterIn(lane: Lane, sequence: number, given: Given = {}): Waiter {
  const { bid = 0, arrivedAt = sequence, isReady = true, isAgain = false, output = 10 } = given
  const estimate = makeEstimate(10, output)
  const facts = { ticketId: `n${sequence}`, estimate, bid, arrivedAt, expiresAt: 1e15, isReady }
  return new Waiter(facts, { lane, isAgain, sequence, agingUsPerBid: LANE_DEFAULTS.agingUsPerBid })
}

const inOrder = (a: Waiter, b: Waiter): number =>
  (a.dueAt < b.dueAt ? -1 : a.dueAt > b.dueAt ? 1 : 0) || a.arrivedAt - b.arrivedAt || a.sequence - b.sequence

describe('lane', () => {
  test('after any events its head and tail are those of a sorted list', () => {
    const step = fc.record({
      kind: fc.constantFrom('add', 'add', 'ready', 'take', 'remove', 'remove'),
      which: fc.nat(100),
      bid: fc.nat(4),
      arrivedAt: fc.nat(3_000_000),
      isReady: fc.boolean(),
      isAgain: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const lane = new Lane(NAME)
        const roomy: LaneOptions = { ...LANE_DEFAULTS, depthMax: 1_000 }
        let twin: Waiter[] = []
        steps.forEach(({ kind, which, ...given }, sequence) => {
          const one = twin[which % Math.max(1, twin.length)]
          const head = lane.head()
          if (kind === 'add') {
            const waiter = waiterIn(lane, sequence, given)
            lane.add(waiter)
            twin.push(waiter)
          } else if (kind === 'ready' && one?.state === 'unready') lane.markReady(one, makeEstimate(20, 30))
          else if (kind === 'take' && head !== undefined) {
            lane.take(head)
            twin = twin.filter((waiter) => waiter !== head)
          } else if (kind === 'remove' && one !== undefined) {
            lane.remove(one)
            twin = twin.filter((waiter) => waiter !== one)
          }
          twin.sort(inOrder)
          expect(lane.head()).toBe(twin.find((waiter) => waiter.state === 'ready'))
          expect(lane.tail()).toBe(twin.at(-1))
          lane.assertInvariants(roomy)
        })
      }),
      { numRuns: 200 },
    )
  })

  test('bounded starvation: nobody is overtaken by one that arrived too late for its bid', () => {
    const bidMax = 10
    const ticket = fc.record({ bid: fc.integer({ min: 0, max: bidMax }), afterUs: fc.nat(2_000_000) })
    fc.assert(
      fc.property(fc.array(ticket, { minLength: 2, maxLength: 60 }), (tickets) => {
        const lane = new Lane(NAME)
        let arrivedAt = 0
        const bids = new Map<Waiter, number>()
        tickets.forEach(({ bid, afterUs }, sequence) => {
          arrivedAt += afterUs
          const waiter = waiterIn(lane, sequence, { bid, arrivedAt })
          bids.set(waiter, bid)
          lane.add(waiter)
        })
        const served: Waiter[] = []
        for (let head = lane.head(); head !== undefined; head = lane.head()) {
          lane.take(head)
          served.push(head)
        }
        served.forEach((late, index) => {
          for (const early of served.slice(index + 1)) {
            const waited = late.arrivedAt - early.arrivedAt
            const bound = (bidMax - (bids.get(early) as number)) * LANE_DEFAULTS.agingUsPerBid
            expect(waited).toBeLessThanOrEqual(bound)
          }
        })
      }),
      { numRuns: 200 },
    )
  })

  test('the worked example of ageing', () => {
    const lane = new Lane(NAME)
    const low = waiterIn(lane, 1, { bid: 0, arrivedAt: 10_000_000 })
    const high = waiterIn(lane, 2, { bid: 5, arrivedAt: 14_000_000 })
    const late = waiterIn(lane, 3, { bid: 5, arrivedAt: 15_100_000 })
    const again = waiterIn(lane, 4, { arrivedAt: 20_000_000, isAgain: true })
    for (const waiter of [low, high, late, again]) lane.add(waiter)
    const order: Waiter[] = []
    for (let head = lane.head(); head !== undefined; head = lane.head()) {
      order.push(head)
      lane.take(head)
    }
    expect(order).toEqual([again, high, low, late])
  })

  test('ten thousand cancellations leave no dead places behind', () => {
    const lane = new Lane(NAME)
    const keeper = waiterIn(lane, 0, { arrivedAt: 0 })
    lane.add(keeper)
    for (let i = 1; i <= 10_000; i++) {
      const waiter = waiterIn(lane, i, { isReady: i % 2 === 0 })
      lane.add(waiter)
      lane.remove(waiter)
    }
    lane.assertInvariants(LANE_DEFAULTS)
    expect([lane.count, lane.cost, lane.head()]).toEqual([1, keeper.estimate.cost, keeper])
  })

  test('nor do turns, which take the living away from among the dead', () => {
    const lane = new Lane(NAME)
    const waiters = Array.from({ length: 100 }, (_, i) => waiterIn(lane, i))
    for (const waiter of waiters) lane.add(waiter)
    // The later half leaves; the earlier half is served, so that the dead stand behind every head.
    for (const waiter of waiters.slice(50)) lane.remove(waiter)
    for (let head = lane.head(); head !== undefined; head = lane.head()) {
      lane.take(head)
      lane.assertInvariants(LANE_DEFAULTS)
    }
    expect(lane.count).toBe(0)
  })
})
