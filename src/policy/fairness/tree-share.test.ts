import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeEstimate } from '../../../test/support/demand.ts'
import { Lane, Waiter } from './lane.ts'
import { makeFairness } from './make-fairness.ts'
import { sharesAmong, type TreePlace } from './tree-share.ts'

/** What each tenant is served of many equal turns by the order itself, when nobody's lane runs empty. */
function servedBy(places: readonly TreePlace[], orgWeights: ReadonlyMap<string, number>): number[] {
  const order = makeFairness('deficit-round-robin')
  for (const [orgId, weight] of orgWeights) order.reweigh({ kind: 'org', orgId, weight })
  for (const [i, { orgId, weight }] of places.entries()) {
    const name = { poolId: 'p', orgId, tenantId: `t${i}`, keyId: String(i), keyWeight: 1, band: 'standard' } as const
    const lane = new Lane({ ...name, tenantWeight: weight })
    const facts = { ticketId: `t${i}`, estimate: makeEstimate(1, 1), bid: 0, arrivedAt: 0, expiresAt: 1e15 }
    lane.add(new Waiter({ ...facts, isReady: true }, { lane, isAgain: false, sequence: 0, agingUsPerBid: 1 }))
    order.attach(lane)
    order.enter(lane)
  }
  const served = places.map(() => 0)
  const turns = 20_000
  for (let turn = 0; turn < turns; turn++) {
    const lane = order.next() as Lane
    order.takeTurn(lane, 100)
    served[Number(lane.keyId)]! += 1 / turns
  }
  return served
}

describe('shares in the tree', () => {
  it('are those of the example', () => {
    const active = [
      { orgId: 'A', weight: 1 },
      { orgId: 'A', weight: 1 },
      { orgId: 'b', weight: 3 },
    ]
    expect(sharesAmong(active, new Map([['A', 1]]))).toEqual([1 / 8, 1 / 8, 3 / 4])
    expect(sharesAmong(active, new Map())).toEqual([1 / 5, 1 / 5, 3 / 5])
    expect(sharesAmong(active.slice(1), new Map([['A', 1]]))).toEqual([1 / 4, 3 / 4])
    expect(sharesAmong([], new Map())).toEqual([])
  })
  it('are what the order of turns gives, whatever the weights', () => {
    const place = fc.record({ orgId: fc.constantFrom('A', 'B', 'C'), weight: fc.integer({ min: 1, max: 5 }) })
    const own = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined })
    const law = fc.property(fc.array(place, { minLength: 1, maxLength: 6 }), own, own, (places, a, b) => {
      const given = [a === undefined ? [] : [['A', a] as const], b === undefined ? [] : [['B', b] as const]].flat()
      const orgWeights = new Map(given)
      const served = servedBy(places, orgWeights)
      const shares = sharesAmong(places, orgWeights)
      for (const [i, share] of shares.entries()) expect(Math.abs(served[i]! - share)).toBeLessThan(0.01)
    })
    fc.assert(law, { numRuns: 25, seed: 7 })
  })
})
