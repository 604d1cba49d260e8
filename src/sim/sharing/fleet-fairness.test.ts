import { describe, expect, it } from 'vitest'
import type { Entry } from '../../domain/entry.ts'
import { FleetFairness } from './fleet-fairness.ts'

const S = 1_000_000
const COST = 100
const WEIGHTS: Record<string, number> = { a: 1, b: 1, c: 4, d: 1 }

/** A pool of one slot: tickets of tenants that always wait, served in the order that is asked for. */
function given(reportAgeS = 0.2) {
  const fairness = new FleetFairness({
    gatewayCount: 2,
    reportAgeS,
    weightOf: (id) => WEIGHTS[id] ?? 1,
    groupOf: (id) => (id === 'd' ? 'another org' : ''),
  })
  let count = 0
  let at = 0
  const take = (entry: object): void => fairness.take({ at, poolId: 'p', ...entry } as unknown as Entry)
  const arrive = (tenantId: string, band = 'standard'): string => {
    const ticketId = `${tenantId}${++count}`
    take({ kind: 'arrived', ticketId, tenantId, band })
    take({ kind: 'admitted', ticketId, tenantId })
    return ticketId
  }
  const end = (ticketId: string, cost = COST): void => {
    take({ kind: 'granted', ticketId })
    at += S
    take({ kind: 'settled', ticketId, cost })
  }
  return { fairness, arrive, end }
}

// Quanta 2·2·4·100, slots (1 + 4)·100·2, and a second's work for two exchanges 2·100·0.2.
const BOUND_OF_EQUALS = 1_600 + 1_000 + 40

describe('L7 for the fleet', () => {
  it('is far from its bound where turns alternate, and beyond it where one of two has all', () => {
    for (const [order, isWithin] of [
      ['ab', true],
      ['a', false],
    ] as const) {
      const { fairness, arrive, end } = given()
      arrive('a')
      arrive('b')
      for (let i = 0; i < 60; i++) end(arrive(order[i % order.length] as string))
      const { bound, apart, ofBound } = fairness.figures()!
      expect(bound).toBeCloseTo(BOUND_OF_EQUALS)
      expect(apart).toBe(isWithin ? COST : 60 * COST)
      expect(ofBound <= 1).toBe(isWithin)
    }
  })

  it('counts per weight, and allows for the age of reports', () => {
    const [fresh, old] = [given(0.2), given(10)]
    for (const { arrive, end } of [fresh, old]) {
      arrive('a')
      arrive('c')
      for (let i = 0; i < 50; i++) end(arrive(i % 5 === 0 ? 'a' : 'c'))
    }
    expect(fresh.fairness.figures()?.apart).toBeLessThanOrEqual(2 * COST)
    const [bound, boundOfOld] = [fresh.fairness.figures()!.bound, old.fairness.figures()!.bound]
    expect(boundOfOld - bound).toBeCloseTo(2 * 9.8 * COST)
  })

  it('compares nobody who has nothing waiting, works offline, or belongs to another org', () => {
    const { fairness, arrive, end } = given()
    const waiting = arrive('a')
    arrive('d')
    arrive('b', 'offline')
    for (let i = 0; i < 60; i++) end(arrive('a'))
    expect(fairness.figures()).toBeUndefined()
    const late = arrive('b')
    end(arrive('a'))
    expect(fairness.figures()?.apart).toBe(COST)
    // It waits for nothing for a while; what the other has meanwhile is not held against anybody.
    end(late, 0)
    for (let i = 0; i < 60; i++) end(arrive('a'))
    arrive('b')
    end(waiting)
    expect(fairness.figures()?.apart).toBe(COST)
  })
})
