import { describe, expect, it } from 'vitest'
import { FAULT_MIXES, l4Bound, playSharedLimits } from '../../bench/experiments/kit/shared-limits-world.ts'
import { Rng } from '../../src/base/rng.ts'

/**
 * Law L4 for the fleet: over every window w all gateways together admit at most R·w + B + (k/N)·R·ttl + j·S, with k
 * gateways cut off and j that join. Simulated faults, drawn traffic. `bench/experiments/shared-limits.ts` prints a table.
 */
const SECOND = 1_000_000
const base = {
  gatewayCount: 4,
  limit: { perMinute: 600_000, burst: 20_000 },
  shares: [0.7, 0.1, 0.1, 0.1],
  requestTokens: [50, 150] as const,
  load: 2,
  durationUs: 16 * SECOND,
}

describe('a budget that four gateways share', () => {
  it.each(Object.entries(FAULT_MIXES))('is kept with: %s', { timeout: 60_000 }, async (_name, faults) => {
    const rng = Rng.stream(7, _name)
    for (let seed = 1; seed <= 3; seed++) {
      const drawn = {
        load: 0.5 + 2.5 * rng.next(),
        lossRatio: rng.below(2) * 0.05,
        delayUsMax: [1_000, 60_000][seed % 2]!,
      }
      const options = { ...base, ...drawn, seed, faults }
      const { excess } = await playSharedLimits(options)
      expect(excess, JSON.stringify(drawn)).toBeLessThanOrEqual(l4Bound(options))
    }
  })

  it('has nearly all of its rate used at every skew, and again within two seconds of a fault', async () => {
    const calm = await playSharedLimits({ ...base, seed: 1, faults: [] })
    for (const second of calm.perSecond.slice(2)) expect(second).toBeGreaterThan(9_500)
    const faults = FAULT_MIXES['store stopped for 4 s']!
    const { perSecond } = await playSharedLimits({ ...base, seed: 1, faults })
    for (const second of perSecond.slice(12)) expect(second).toBeGreaterThan(9_500)
    // Alone, every gateway had its part.
    for (const second of perSecond.slice(7, 10)) expect(second).toBeGreaterThan(5_000)
  })

  it('would not be kept by gateways that use the whole limit while the store is away', async () => {
    const faults = FAULT_MIXES['a gateway cut off for 6 s']!
    const options = { ...base, seed: 1, faults }
    const full = await playSharedLimits({ ...options, way: 'full' })
    expect(full.excess).toBeGreaterThan(l4Bound(options))
  })
})
