import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RoomShard } from './room-grants.ts'
import { type LaneDemand, poolTargets, slotsByReplica, wholeSlots } from './room-targets.ts'

const lane = (tenantId: string, demand: Record<string, number>, terms: Partial<LaneDemand> = {}): LaneDemand => ({
  orgId: tenantId,
  orgWeight: undefined,
  tenantId,
  tenantWeight: 1,
  keyId: `${tenantId}-key`,
  keyWeight: 1,
  usPerCost: 1,
  demand: new Map(Object.entries(demand)),
  ...terms,
})
const four = ['g1', 'g2', 'g3', 'g4']
const asked = (ownId: string, slots: number, gatewayIds = four) => ({
  gatewayIds,
  ownId,
  gatewayCount: gatewayIds.length,
  slots,
})

describe('targets of a pool', () => {
  const saturated = [lane('A', { g1: 100, g2: 100, g3: 100, g4: 100 }), lane('B', { g1: 400 })]

  it('give a tenant one share however many gateways it waits at', () => {
    const first = poolTargets(saturated, asked('g1', 64))
    expect([...first.parts.values()]).toEqual([40 / 64, 8 / 64, 8 / 64, 8 / 64])
    expect([...first.factors.tenants]).toEqual([
      ['A', 0.25],
      ['B', 1],
    ])
    // B does not wait here; its weight stays over nothing, for a report may be out of date.
    expect([...poolTargets(saturated, asked('g2', 64)).factors.tenants]).toEqual([
      ['A', 0.25],
      ['B', 0.125],
    ])
  })

  it('give a tenant with little to do what it asks for, and the rest to those who wait', () => {
    const { parts } = poolTargets(
      [lane('light', { g1: 4 }), lane('A', { g2: 90 }), lane('B', { g3: 90 })],
      asked('g1', 64),
    )
    expect([...parts.values()]).toEqual([4 / 64, 30 / 64, 30 / 64, 0])
  })

  it('count a tenant whose work holds slots for longer with more slots', () => {
    const lanes = [lane('slow', { g1: 90 }, { usPerCost: 2 }), lane('quick', { g2: 90 })]
    const { parts } = poolTargets(lanes, asked('g1', 60))
    expect(parts.get('g1')).toBeCloseTo(2 / 3, 9)
  })

  it('leave spare slots where work is, and some to everybody', () => {
    const { parts } = poolTargets([lane('A', { g1: 10 })], asked('g1', 50))
    expect(parts.get('g1')).toBeCloseTo((10 + 30 + 2.5) / 50, 9)
    expect(parts.get('g4')).toBeCloseTo(2.5 / 50, 9)
    expect([...poolTargets([], asked('g1', 50)).parts.values()]).toEqual([0.25, 0.25, 0.25, 0.25])
  })

  it('add up to the whole over all gateways, for any tree, and factors stay within the clamp', () => {
    const demand = fc.record({ g1: fc.nat(50), g2: fc.nat(50), g3: fc.nat(50) })
    const drawn = fc.record({
      org: fc.nat(3),
      orgWeight: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
      weight: fc.integer({ min: 1, max: 9 }),
      demand,
    })
    fc.assert(
      fc.property(fc.array(drawn, { maxLength: 12 }), fc.integer({ min: 1, max: 200 }), (tenants, slots) => {
        const lanes = tenants.map(({ org, weight, demand: at }, t) =>
          lane(`t${t}`, at, {
            orgId: `o${org}`,
            orgWeight: tenants.find((one) => one.org === org)?.orgWeight,
            tenantWeight: weight,
          }),
        )
        const { parts, factors } = poolTargets(lanes, asked('g2', slots, ['g1', 'g2', 'g3']))
        expect([...parts.values()].reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9)
        for (const factor of [...factors.tenants.values(), ...factors.orgs.values()]) {
          expect(factor).toBeGreaterThanOrEqual(1 / 6)
          expect(factor).toBeLessThanOrEqual(1)
        }
      }),
    )
  })
})

describe('whole slots', () => {
  const parts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 8 })
  const limits = fc.array(fc.nat(70), { minLength: 1, maxLength: 6 })

  it('are all given out at every replica', () => {
    fc.assert(
      fc.property(parts, limits, (drawn, at) => {
        const sum = drawn.reduce((a, b) => a + b, 0) || 1
        const byReplica = slotsByReplica({
          parts: new Map(drawn.map((part, g) => [`g${g}`, part / sum])),
          limits: new Map(at.map((limit, r) => [`r${r}`, limit])),
          starvedS: new Map(),
        })
        for (const [r, limit] of at.entries()) {
          const slots = [...(byReplica.get(`r${r}`)?.values() ?? [])]
          expect(slots.reduce((a, b) => a + b, 0)).toBe(drawn.some((part) => part > 0) || limit === 0 ? limit : limit)
          expect(Math.min(...slots)).toBeGreaterThanOrEqual(0)
        }
      }),
    )
  })

  it('leave no gateway without one where there are many, and lose nothing to rounding over replicas', () => {
    const byReplica = slotsByReplica({
      parts: new Map([
        ['a', 0.999],
        ['b', 0.001],
      ]),
      limits: new Map([
        ['r1', 32],
        ['r2', 32],
      ]),
      starvedS: new Map(),
    })
    const ofB = [...byReplica.values()].reduce((sum, at) => sum + (at.get('b') ?? 0), 0)
    expect(ofB).toBe(1)
  })

  it('go round by who has waited longest where there are fewer than gateways', () => {
    const equal = new Map(four.map((id) => [id, 0.25]))
    const holders = (starved: Record<string, number>) =>
      [
        ...(slotsByReplica({
          parts: equal,
          limits: new Map([['r', 1]]),
          starvedS: new Map(Object.entries(starved)),
        }).get('r') ?? []),
      ]
        .filter(([, slots]) => slots > 0)
        .map(([id]) => id)
    expect(holders({})).toEqual(['g1'])
    expect(holders({ g2: 0.1, g3: 0.2 })).toEqual(['g3'])
    expect(wholeSlots(2, [0.5, 0.5, 0.5, 0.5], (i) => (i === 3 ? 1 : 0))).toEqual([1, 0, 0, 1])
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
