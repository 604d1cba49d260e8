import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { simulate } from '../../src/sim/simulate.ts'

/**
 * Several gateways over one fleet and one lease store, with the whole platform: laws L2, L4 and L7 for the fleet are checked
 * by the simulator itself (`sim/sharing/fleet-laws.ts`, `fleet-fairness.ts`). Short runs of the shipped scenarios; whole ones are in the long suite.
 */
const short = (name: string, terms: Partial<Scenario> = {}): Scenario => ({
  ...loadScenario(name).scenario,
  durationS: 14,
  warmupS: 4,
  parts: {},
  expect: [],
  ...terms,
})

describe('gateways that share a fleet', { timeout: 120_000 }, () => {
  it.each([
    ['gateway-loss', [{ kind: 'gateway-loss', target: 'gateway-1', atS: 5, forS: 4 }]],
    ['store-partition', [{ kind: 'gateway-cut', target: 'gateway-1', atS: 5, forS: 5 }]],
    ['store-wiped', [{ kind: 'lease-store-wipe', target: 'lease-store', atS: 6, forS: 0 }]],
  ] as const)('keep limits and budgets in %s', async (name, faults) => {
    const report = await simulate(short(name, { faults: [...faults] }), { seed: 5 })
    expect(report.laws).toEqual([])
    // The only replica is billed once, by four gateways, for ten seconds and until the last answers have ended.
    const { closedSeconds } = report.cost.statement
    expect(closedSeconds).toBeGreaterThanOrEqual(10)
    expect(closedSeconds).toBeLessThan(20)
    expect(report.gateways?.inFlightOfLimit).toBeLessThanOrEqual(1)
    expect(report.gateways?.inFlightOfLimit).toBeGreaterThan(0.5)
    expect(report.gateways?.budgets['metered tokens']?.over).toBeLessThanOrEqual(0)
  })

  it('would have more in flight than the limit if each used all of it while the store is away', async () => {
    const scenario = short('store-partition', {
      faults: [{ kind: 'gateway-cut', target: '*', atS: 5, forS: 6 }],
      load: 2,
    })
    const gateways = { ...scenario.gateways!, way: 'fallback' as const }
    const report = await simulate({ ...scenario, gateways }, { seed: 5 })
    expect(report.gateways?.inFlightOfLimit).toBeGreaterThan(1)
    expect(report.laws).toEqual([])
  })

  it('find nearly all prefixes that one gateway would find, and half without the store', async () => {
    const scenario = short('shared-prefixes', { durationS: 24, warmupS: 14 })
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
    const scenario = short('gateway-loss', { durationS: 60, faults: [] })
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

  it('are the same with the same seed', async () => {
    const scenario = short('store-partition', { durationS: 8, faults: [] })
    const once = async (): Promise<unknown> => ({ ...(await simulate(scenario, { seed: 2 })), wall: undefined })
    expect(await once()).toEqual(await once())
  })
})
