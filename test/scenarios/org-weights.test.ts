import { expect, it } from 'vitest'
import { secondsToUs } from '../../src/base/clock.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { sampleValue } from '../support/parse-exposition.ts'
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
    durationS: 60,
    warmupS: 20,
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

/** The index as /metrics has it at the end of a run in which nobody is refused: the order decides who gets how much. */
async function fairnessIndex(order: string): Promise<{ readonly index: number; readonly tenants: number }> {
  const scenario = scenarioOf([
    { id: 'small', weight: 3 },
    { id: 'big', weight: 1 },
  ])
  const { entries } = await journalOf(
    { ...scenario, platform: { ...scenario.platform, fairness: { order }, admission: { mode: 'observe' } } },
    { seed: 5 },
  )
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  for (const entry of entries) if (entry.at < secondsToUs(scenario.durationS)) metrics.take(entry)
  const text = metrics.text()
  const value = (name: string): number => sampleValue(text, name, { pool: 'm-local' }) ?? Number.NaN
  return { index: value('spillway_pool_fairness_index'), tenants: value('spillway_pool_backlogged_tenants') }
}

async function smallShare(orgs: ReadonlyArray<{ id: string; weight: number }>): Promise<number> {
  const { report } = await journalOf(scenarioOf(orgs), { seed: 5 })
  expect(report.laws).toEqual([])
  return report.tenants['s']!.served / report.served
}

it('share by the weights of orgs', async () => {
  const weighed = await smallShare([
    { id: 'small', weight: 3 },
    { id: 'big', weight: 1 },
  ])
  expect(Math.abs(weighed / 0.75 - 1)).toBeLessThan(0.05)
})

it('share by the number of tenants without weights of orgs', async () => {
  expect(Math.abs((await smallShare([])) / 0.2 - 1)).toBeLessThan(0.08)
})

it('show in the index of fairness', async () => {
  const fair = await fairnessIndex('deficit-round-robin')
  expect(fair.tenants).toBe(5)
  expect(fair.index).toBeGreaterThan(0.99)
})

it('have a lower index of fairness in an order without shares', async () => {
  const unfair = await fairnessIndex('round-robin')
  expect(unfair.index).toBeLessThan(0.95)
})
