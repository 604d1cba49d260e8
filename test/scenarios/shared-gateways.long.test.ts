import { describe, expect, it } from 'vitest'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { simulate } from '../../src/sim/simulate.ts'
import { shortScenario } from '../support/simulated.ts'

/** Several gateways over one fleet, compared with one gateway and with gateways that share nothing. */
describe('gateways that share a fleet', { timeout: 120_000 }, () => {
  it('find nearly all prefixes that one gateway would find, and half without the store', async () => {
    const scenario = shortScenario('shared-prefixes', { durationS: 24, warmupS: 14 })
    const hitsOf = async (terms: Partial<Scenario>): Promise<number> =>
      (await simulate({ ...scenario, ...terms }, { seed: 1 })).engine.prefixHitRatio ?? 0
    const one = await hitsOf({ gateways: { count: 1 } })
    expect(await hitsOf({})).toBeGreaterThan(0.95 * one)
    // All know where the home of a beginning is, without a word; no delta arrives.
    const alone = await hitsOf({ faults: [{ kind: 'gateway-cut', target: '*', atS: 1, forS: 24 }] })
    expect(alone).toBeLessThan(0.95 * one)
    expect(alone).toBeGreaterThan(0.5 * one)
  })

  it('serve a tenant alike wherever it waits, and would not with a fixed part each (L7)', async () => {
    const scenario = shortScenario('gateway-loss', { durationS: 60, faults: [] })
    const { retry: _, ...one } = scenario.workload[0]!
    const busy = { ...one, arrivals: { kind: 'poisson' as const, ratePerS: 60 } }
    const workload = [busy, { ...busy, tenant: 'metered', gateways: [1] }]
    const tenants = ['free', 'metered'].map((id) => ({ id, weight: 1, slo: 'steady', contract: 'reject' }))
    const shares = async (way: 'leased' | 'static') => {
      const platform = { ...scenario.platform, tenants }
      const gateways = { ...scenario.gateways!, way }
      return simulate({ ...scenario, platform, workload, gateways }, { seed: 3 })
    }
    const [leased, fixed] = [await shares('leased'), await shares('static')]
    expect(leased.laws).toEqual([])
    expect(leased.gateways?.fairness?.ofBound).toBeLessThan(0.2)
    expect(fixed.gateways?.fairness?.apart).toBeGreaterThan(3 * leased.gateways!.fairness!.apart)
  })
})
