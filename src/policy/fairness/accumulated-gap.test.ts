import { describe, expect, test } from 'vitest'
import { type GapOptions, measureGap } from '../../../test/support/tiny-engine.ts'

/** The experiment of the VTC paper in short; ten seeds and ten minutes are in bench/micro/fairness-gap.ts. */
function gapOf(
  options: Pick<GapOptions, 'fairness' | 'knows' | 'tenantCount' | 'lengths' | 'aheadTurns' | 'slots'>,
): number {
  const seeds = [1, 2, 3]
  return seeds.reduce((sum, seed) => sum + measureGap({ ...options, seed, seconds: 300 }).gap, 0) / seeds.length
}

describe.each([2, 8])('%i tenants that all send more than their share, 256 in and 256 out', (tenantCount) => {
  const drr = { fairness: 'deficit-round-robin', tenantCount } as const

  test('history is as good as the truth when answers are alike', () => {
    const known = gapOf({ ...drr, knows: 'true-length', lengths: 'fixed' })
    expect(gapOf({ ...drr, knows: 'history', lengths: 'fixed' })).toBeLessThanOrEqual(1.1 * known)
    // Never more than one request apart.
    expect(known).toBeLessThan(256 + 2 * 256)
  })

  test('history is of the same size as the truth when they are not, and first come first served is not fair', () => {
    const known = gapOf({ ...drr, knows: 'true-length', lengths: 'uniform' })
    expect(gapOf({ ...drr, knows: 'history', lengths: 'uniform' })).toBeLessThan(2 * known)
    const fifo = gapOf({ fairness: 'fifo', knows: 'history', tenantCount, lengths: 'uniform' })
    expect(fifo).toBeGreaterThan(3 * known)
  })

  test.each(['uniform', 'log-normal'] as const)('%s lengths: charged a horizon ahead, not the whole', (lengths) => {
    const whole = gapOf({ ...drr, knows: 'history', lengths, aheadTurns: Number.POSITIVE_INFINITY })
    expect(gapOf({ ...drr, knows: 'history', lengths })).toBeLessThan(0.85 * whole)
  })

  test('64 at once, turns come more often, and the horizon is nearer: about as even as the token counter', () => {
    const many = { tenantCount, knows: 'history', lengths: 'uniform', slots: 64 } as const
    const counter = gapOf({ ...many, fairness: 'virtual-token-counter' })
    // With the horizon that is right for 19 at once it is 1.3 to 2 times.
    expect(gapOf({ ...many, fairness: 'deficit-round-robin' })).toBeLessThan(1.25 * counter)
  })
})
