import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Share } from './share.ts'
import { WeightedFairQueueing } from './weighted-fair-queueing.ts'

/** A flow with a queue of costs, as a link has. */
class Flow extends Share {
  readonly queue: Packet[] = []

  override headCost(): number {
    return this.queue[0]?.cost ?? 0
  }
}

interface Packet {
  readonly flow: number
  readonly cost: number
  readonly arrivesAt: number
  endsAt: number
}

/** A link that does one unit of work a unit of time, one packet after the other, in the order under test. */
function playLink(weights: readonly number[], arrivals: readonly Omit<Packet, 'endsAt'>[]): Packet[] {
  const order = new WeightedFairQueueing<Flow>()
  const flows = weights.map((weight, index) => new Flow(`${index}`, weight))
  const packets = arrivals.map((one) => ({ ...one, endsAt: 0 }))
  let arrived = 0
  let now = 0
  const takeArrivals = () => {
    for (let next = packets[arrived]; next !== undefined && next.arrivesAt <= now; next = packets[++arrived]) {
      const flow = flows[next.flow] as Flow
      flow.queue.push(next)
      if (flow.queue.length === 1) order.enter(flow)
    }
  }
  for (let served = 0; served < packets.length; served++) {
    takeArrivals()
    if (order.first() === undefined) now = packets[arrived]?.arrivesAt as number
    takeArrivals()
    const flow = order.first() as Flow
    const packet = flow.queue.shift() as Packet
    order.takeTurn(flow, packet.cost)
    if (flow.queue.length === 0) order.leave(flow)
    now += packet.cost
    packet.endsAt = now
    order.assertInvariants()
  }
  return packets
}

/** The ideal server, step by step: every backlogged flow is served at once, by weight. When each packet ends. */
function playFluid(weights: readonly number[], arrivals: readonly Omit<Packet, 'endsAt'>[]): number[] {
  const left = arrivals.map(({ cost }) => cost)
  const endsAt = arrivals.map(() => 0)
  const headOf = (flow: number, now: number) =>
    arrivals.findIndex((one, i) => one.flow === flow && one.arrivesAt <= now && (left[i] as number) > 0)
  let now = 0
  while (left.some((work) => work > 0)) {
    const heads = weights.map((_, flow) => headOf(flow, now))
    const total = weights.reduce((sum, weight, flow) => sum + ((heads[flow] as number) >= 0 ? weight : 0), 0)
    const nextArrival = arrivals.find(({ arrivesAt }) => arrivesAt > now)?.arrivesAt ?? Number.POSITIVE_INFINITY
    let span = nextArrival - now
    weights.forEach((weight, flow) => {
      const head = heads[flow] as number
      if (head >= 0) span = Math.min(span, ((left[head] as number) * total) / weight)
    })
    now += span
    weights.forEach((weight, flow) => {
      const head = heads[flow] as number
      if (head < 0) return
      left[head] = (left[head] as number) - (span * weight) / total
      if ((left[head] as number) > 1e-9) return
      left[head] = 0
      endsAt[head] = now
    })
  }
  return endsAt
}

const drawnArrivals = fc
  .array(
    fc.record({
      flow: fc.nat(3),
      cost: fc.integer({ min: 1, max: 40 }),
      arrivesAt: fc.integer({ min: 0, max: 400 }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((drawn) => drawn.toSorted((a, b) => a.arrivesAt - b.arrivesAt))

const drawnWeights = fc.array(fc.constantFrom(0.5, 1, 2, 3), { minLength: 4, maxLength: 4 })

const HAPPENINGS = ['enter', 'leave', 'pass', 'recall', 'turn', 'charge', 'refund', 'reweigh', 'rehead'] as const

/** Does what the dispatcher might do, where the share's place allows it. */
function happen(
  order: WeightedFairQueueing<Flow>,
  flow: Flow,
  what: (typeof HAPPENINGS)[number],
  amount: number,
): void {
  const first = order.first()
  if (what === 'enter' && !flow.isActive) order.enter(flow)
  else if (what === 'leave' && flow.isActive) order.leave(flow)
  else if (what === 'pass' && flow.isActive && !flow.isAside) order.pass(flow)
  else if (what === 'recall' && flow.isAside) order.recall(flow)
  else if (what === 'turn' && first !== undefined) order.takeTurn(first, amount)
  else if (what === 'charge') order.charge(flow, amount)
  else if (what === 'refund') order.charge(flow, -amount / 4)
  else if (what === 'reweigh') order.reweigh(flow, 0.001 + amount / 100)
  else if (what === 'rehead') order.rehead(flow)
}

describe('weighted fair queueing', () => {
  test('no packet ends later than in the ideal server by more than two of the dearest packet', () => {
    fc.assert(
      fc.property(drawnWeights, drawnArrivals, (weights, arrivals) => {
        const ideal = playFluid(weights, arrivals)
        const dearest = Math.max(...arrivals.map(({ cost }) => cost))
        playLink(weights, arrivals).forEach(({ endsAt }, index) => {
          expect(endsAt).toBeLessThanOrEqual((ideal[index] as number) + 2 * dearest + 1e-6)
        })
      }),
      { numRuns: 500 },
    )
  })

  test('the cheap head goes before the dear one of the same start, and weights divide costs', () => {
    const served = playLink(
      [1, 1, 4],
      [
        { flow: 0, cost: 30, arrivesAt: 0 },
        { flow: 1, cost: 10, arrivesAt: 0 },
        { flow: 2, cost: 36, arrivesAt: 0 },
      ],
    )
    // Finish tags 30, 10 and 9.
    expect(served.map(({ endsAt }) => endsAt)).toEqual([76, 46, 36])
  })

  test('a flow that was away gets its share from now on, and nothing for its absence', () => {
    const steady = Array.from({ length: 40 }, () => ({ flow: 0, cost: 10, arrivesAt: 0 }))
    const late = Array.from({ length: 10 }, () => ({ flow: 1, cost: 10, arrivesAt: 200 }))
    const ends = playLink([1, 1], [...steady, ...late])
      .filter(({ flow }) => flow === 1)
      .map(({ endsAt }) => endsAt)
    expect(ends[0]).toBeGreaterThan(200)
    expect(ends.every((endsAt, index) => index === 0 || endsAt - (ends[index - 1] as number) === 20)).toBe(true)
  })

  test('a correction after the turn counts as if the turn had cost that', () => {
    const [a, b] = [new Flow('a', 1), new Flow('b', 1)]
    const order = new WeightedFairQueueing<Flow>()
    for (const flow of [a, b]) {
      flow.queue.push({ flow: 0, cost: 100, arrivesAt: 0, endsAt: 0 })
      order.enter(flow)
    }
    const turns: string[] = []
    for (let i = 0; i < 12; i++) {
      const flow = order.first() as Flow
      turns.push(flow.id)
      order.takeTurn(flow, 100)
      // Every answer of a is three times as long as predicted, every answer of b costs half.
      order.charge(flow, flow === a ? 200 : -50)
      order.assertInvariants()
    }
    expect(turns.filter((id) => id === 'a').length).toBeLessThanOrEqual(3)
  })

  test('books are balanced after any sequence of events', () => {
    const event = fc.record({
      what: fc.constantFrom(...HAPPENINGS),
      flow: fc.nat(4),
      amount: fc.integer({ min: 0, max: 500 }),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (events) => {
        const order = new WeightedFairQueueing<Flow>()
        const flows = [0.001, 1, 1, 2, 1_000].map((weight, index) => new Flow(`${index}`, weight))
        for (const flow of flows) flow.queue.push({ flow: 0, cost: 10, arrivesAt: 0, endsAt: 0 })
        for (const { what, flow: which, amount } of events) {
          const flow = flows[which] as Flow
          happen(order, flow, what, amount)
          order.assertInvariants()
          expect(order.size).toBe(flows.filter(({ isActive }) => isActive).length)
          // Whatever happens, somebody of those with work is where the ideal server is: nobody waits for nobody.
          if (order.size > 0) expect(flows.some((one) => one.isActive && order.standingOf(one) >= -1e-6)).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })
})
