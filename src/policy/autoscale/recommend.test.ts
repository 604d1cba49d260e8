import { describe, expect, it } from 'vitest'
import { replicasFor, withinBounds } from './recommend.ts'

/** A replica drains 8 of its 10 units of work a second, and what waits is to be worked off in two seconds. */
const TERMS = { utilisationRatio: 0.8, drainTargetUs: 2_000_000 }
const EACH = 1e-5
const NOTHING = { demandPerUs: 0, marginPerUs: 0, backlogCost: 0, drainPerReplicaUs: EACH }

describe('replicas for work', () => {
  it('are needed for demand, for the margin and for what waits, each by itself', () => {
    expect(replicasFor({ ...NOTHING, demandPerUs: 2.5e-5 }, TERMS)).toBe(4)
    expect(replicasFor({ ...NOTHING, marginPerUs: 2.5e-5 }, TERMS)).toBe(4)
    // 50 units in two seconds are 25 a second.
    expect(replicasFor({ ...NOTHING, backlogCost: 50 }, TERMS)).toBe(4)
    expect(replicasFor({ ...NOTHING, demandPerUs: 1e-5, marginPerUs: 1e-5, backlogCost: 50 }, TERMS)).toBe(6)
  })

  it('are fewer where what waits may take longer', () => {
    const backlog = { ...NOTHING, backlogCost: 500 }
    const counts = [1, 2, 4, 8].map((s) => replicasFor(backlog, { ...TERMS, drainTargetUs: s * 1e6 }))
    expect(counts).toEqual([63, 32, 16, 8])
  })

  it('are not one more for work that fits exactly', () => {
    expect(replicasFor({ ...NOTHING, demandPerUs: 3 * 0.8 * EACH }, TERMS)).toBe(3)
    expect(replicasFor({ ...NOTHING, demandPerUs: 3.01 * 0.8 * EACH }, TERMS)).toBe(4)
  })

  it('are none for no work, and one where nobody knows what a replica drains', () => {
    expect(replicasFor(NOTHING, TERMS)).toBe(0)
    expect(replicasFor({ ...NOTHING, demandPerUs: 1, drainPerReplicaUs: 0 }, TERMS)).toBe(1)
  })

  it('stay within what the operator wants', () => {
    const bounds = { minWarm: 2, max: 5 }
    expect([0, 2, 3.2, 5, 9, Number.POSITIVE_INFINITY].map((count) => withinBounds(count, bounds))).toEqual([
      2, 2, 4, 5, 5, 5,
    ])
  })
})
