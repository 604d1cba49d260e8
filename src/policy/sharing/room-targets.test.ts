import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RoomShard } from './room-grants.ts'
import { type BacklogNode, localShares, slotsByReplica, wholeSlots } from './room-targets.ts'

const lane = (id: string, weight: number, backlog: Record<string, number>): BacklogNode => ({
  id,
  weight,
  children: [],
  backlog: new Map(Object.entries(backlog)),
})
const node = (id: string, weight: number, children: BacklogNode[]): BacklogNode => ({ id, weight, children })

describe('local shares', () => {
  const root = node('root', 1, [lane('A', 1, { g1: 10, g2: 10, g3: 10, g4: 10 }), lane('B', 1, { g1: 40 })])

  it('give a tenant one share however many gateways it waits at', () => {
    const first = localShares(root, 'g1', 4)
    expect(first.ratio).toBe(0.625)
    expect([...first.weights]).toEqual([
      ['A', 0.25],
      ['B', 1],
    ])
    // B does not wait here; its weight stays over nothing, for a report may be out of date.
    expect([...localShares(root, 'g2', 4).weights]).toEqual([
      ['A', 0.25],
      ['B', 0.125],
    ])
  })

  it('sum to the whole over all gateways, at any depth', () => {
    const backlog = fc.record({ g1: fc.nat(50), g2: fc.nat(50), g3: fc.nat(50) })
    const lanes = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), backlog), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(fc.array(lanes, { minLength: 1, maxLength: 4 }), (orgs) => {
        const tree = node(
          'root',
          1,
          orgs.map((of, o) =>
            node(
              `o${o}`,
              o + 1,
              of.map(([weight, at], i) => lane(`o${o}t${i}`, weight, at)),
            ),
          ),
        )
        const sum = ['g1', 'g2', 'g3'].reduce((total, id) => total + localShares(tree, id, 3).ratio, 0)
        const hasBacklog = orgs.flat().some(([, at]) => at.g1 + at.g2 + at.g3 > 0)
        expect(sum).toBeCloseTo(hasBacklog ? 1 : 0, 9)
      }),
    )
  })
})

describe('whole slots', () => {
  it('are all given out, each within one of what is due', () => {
    const ratios = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(fc.nat(200), ratios, (total, drawn) => {
        const of = new Map(drawn.map((ratio, i) => [`g${i}`, ratio]))
        const slots = wholeSlots(total, of)
        expect([...slots.values()].reduce((a, b) => a + b)).toBe(total)
        const sum = drawn.reduce((a, b) => a + b)
        for (const [id, ratio] of of)
          expect(Math.abs((slots.get(id) ?? 0) - (sum === 0 ? total / of.size : (total * ratio) / sum))).toBeLessThan(
            1.000_001,
          )
      }),
    )
  })

  it('go to those with the most demand where there are too few, and never over a replica\u2019s limit', () => {
    expect([
      ...wholeSlots(
        1,
        new Map([
          ['a', 0.2],
          ['b', 0.5],
          ['c', 0.3],
        ]),
      ),
    ]).toEqual([
      ['a', 0],
      ['b', 1],
      ['c', 0],
    ])
    expect([
      ...slotsByReplica(
        5,
        new Map([
          ['r1', 8],
          ['r2', 8],
        ]),
      ),
    ]).toEqual([
      ['r1', 3],
      ['r2', 2],
    ])
  })
})

describe('granted room', () => {
  it('never sums to more than the limit, whatever is asked, lost or late', () => {
    const call = fc.record({
      who: fc.nat(3),
      target: fc.nat(80),
      frees: fc.nat(20),
      isAnswerLost: fc.boolean(),
      waitUs: fc.nat(400_000),
    })
    fc.assert(
      fc.property(fc.array(call, { maxLength: 120 }), (calls) => {
        const store = new RoomShard()
        const gateways = Array.from({ length: 4 }, () => ({ held: 0, allowance: 0 }))
        let now = 1_000_000
        for (const { who, target, frees, isAnswerLost, waitUs } of calls) {
          now += waitUs + 1
          const gateway = gateways[who]!
          gateway.held = Math.max(0, gateway.held - frees)
          // A gateway lowers itself before it asks.
          gateway.allowance = Math.min(gateway.allowance, target)
          const member = { id: `g${who}`, epoch: '', told: 0, ttlMs: 1_000, forgetMs: 1e9 }
          const ask = { name: 'r', limit: 64, held: gateway.held, granted: gateway.allowance, target, sequence: now }
          const [granted] = store.ask(now, member, { topic: 'p', text: '' }, [ask]).granted
          if (!isAnswerLost) gateway.allowance = granted ?? 0
          gateway.held = Math.max(gateway.held, gateway.allowance)
          expect(gateways.reduce((sum, { held }) => sum + held, 0)).toBeLessThanOrEqual(64)
        }
      }),
    )
  })

  it('ignores a call that comes after a later one', () => {
    const store = new RoomShard()
    const member = { id: 'g', epoch: '', told: 0, ttlMs: 1_000, forgetMs: 600_000 }
    const ask = (target: number, sequence: number) =>
      store.ask(1, member, { topic: 'p', text: '' }, [{ name: 'r', limit: 8, held: 0, granted: 0, target, sequence }])
    expect(ask(5, 2).granted).toEqual([5])
    expect(ask(8, 1).granted).toEqual([-1])
  })
})
