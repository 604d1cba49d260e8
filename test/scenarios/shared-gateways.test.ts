import { describe, expect, it } from 'vitest'
import { simulate } from '../../src/sim/simulate.ts'
import { shortScenario } from '../support/simulated.ts'

/**
 * Several gateways over one fleet and one lease store, with the whole platform: laws L2, L4 and L7 for the fleet are checked
 * by the simulator itself (`sim/sharing/fleet-laws.ts`, `fleet-fairness.ts`). Short runs of the shipped scenarios. What gateways find and share in comparison with one: `shared-gateways.long.test.ts`.
 */
describe('gateways that share a fleet', { timeout: 120_000 }, () => {
  it.each([
    ['gateway-loss', [{ kind: 'gateway-loss', target: 'gateway-1', atS: 5, forS: 4 }]],
    ['store-partition', [{ kind: 'gateway-cut', target: 'gateway-1', atS: 5, forS: 5 }]],
    ['store-wiped', [{ kind: 'lease-store-wipe', target: 'lease-store', atS: 6, forS: 0 }]],
  ] as const)('keep limits and budgets in %s', async (name, faults) => {
    const report = await simulate(shortScenario(name, { faults: [...faults] }), { seed: 5 })
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
    const scenario = shortScenario('store-partition', {
      faults: [{ kind: 'gateway-cut', target: '*', atS: 5, forS: 6 }],
      load: 2,
    })
    const gateways = { ...scenario.gateways!, way: 'fallback' as const }
    const report = await simulate({ ...scenario, gateways }, { seed: 5 })
    expect(report.gateways?.inFlightOfLimit).toBeGreaterThan(1)
    expect(report.laws).toEqual([])
  })

  it('are the same with the same seed', async () => {
    const scenario = shortScenario('store-partition', { durationS: 8, faults: [] })
    const once = async (): Promise<unknown> => ({ ...(await simulate(scenario, { seed: 2 })), wall: undefined })
    expect(await once()).toEqual(await once())
  })
})
