import { expect, it } from 'vitest'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { journalOf } from '../support/simulated.ts'

/**
 * Orgs with weights of their own: `small` has one tenant and weight 3, `big` has four and weight 1. All ask for more than
 * there is, so the work served is 3 to 1, however many tenants an org has; without the weights it is 1 to 4.
 */
function scenarioOf(orgs: ReadonlyArray<{ id: string; weight: number }>): Scenario {
  const tenants = [{ id: 's', org: 'small' }, ...[1, 2, 3, 4].map((i) => ({ id: `b${i}`, org: 'big' }))]
  return {
    name: 'org-weights',
    about: '',
    durationS: 90,
    warmupS: 30,
    platform: {
      models: [{ name: 'm' }],
      pools: [{ model: 'm', backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 2 }],
      orgs,
      tenants: tenants.map((tenant) => ({ ...tenant, slo: 'steady', contract: 'reject' })),
    },
    // Two replicas serve about 45 of these a second.
    workload: tenants.map(({ id, org }) => ({
      tenant: id,
      model: 'm',
      arrivals: { kind: 'poisson', ratePerS: org === 'small' ? 90 : 22 },
      prompt: { kind: 'uniform', min: 500, max: 1_500 },
      output: { kind: 'uniform', min: 100, max: 300 },
    })),
  }
}

async function smallShare(orgs: ReadonlyArray<{ id: string; weight: number }>): Promise<number> {
  const { report } = await journalOf(scenarioOf(orgs), { seed: 5 })
  expect(report.laws).toEqual([])
  return report.tenants['s']!.served / report.served
}

it('share by the weights of orgs, not by the number of tenants', { timeout: 60_000 }, async () => {
  const weighed = await smallShare([
    { id: 'small', weight: 3 },
    { id: 'big', weight: 1 },
  ])
  expect(Math.abs(weighed / 0.75 - 1)).toBeLessThan(0.05)
  expect(Math.abs((await smallShare([])) / 0.2 - 1)).toBeLessThan(0.08)
})
