import { expect } from 'vitest'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { journalOf } from './simulated.ts'

/**
 * Who gets how much, against an oracle: max-min fair sharing by weight of what was served in all. A tenant that asks
 * for less than its share gets what it asks for; what it leaves is shared by the others. (Law L7, over a whole run.)
 */
export interface Party {
  readonly weight: number
  /** Times its share, were all to ask for everything. */
  readonly asks: number
}

/** Two replicas serve about this many chats a second. */
const CAPACITY_PER_S = 45
/** Of the lengths below, on the average: prompt + 4 × output. */
const MEAN_COST = 1_000 + 4 * 200

function scenarioOf(parties: readonly Party[]): Scenario {
  const weights = parties.reduce((sum, { weight }) => sum + weight, 0)
  return {
    name: 'fair-shares',
    about: '',
    durationS: 60,
    warmupS: 20,
    platform: {
      models: [{ name: 'large' }],
      pools: [{ model: 'large', backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 2 }],
      tenants: parties.map(({ weight }, i) => ({ id: `t${i}`, weight, slo: 'steady', contract: 'reject' })),
    },
    workload: parties.map(({ weight, asks }, i) => ({
      tenant: `t${i}`,
      model: 'large',
      arrivals: { kind: 'poisson', ratePerS: asks * CAPACITY_PER_S * (weight / weights) },
      prompt: { kind: 'uniform', min: 500, max: 1_500 },
      output: { kind: 'uniform', min: 100, max: 300 },
    })),
  }
}

/** Water-filling: the level up to which everybody's glass is filled, each as wide as its weight. */
function maxMin(demands: ReadonlyArray<{ weight: number; demand: number }>, capacity: number): number[] {
  const given = demands.map(() => 0)
  const open = new Set(demands.keys())
  let left = capacity
  while (open.size > 0) {
    const weights = [...open].reduce((sum, i) => sum + demands[i]!.weight, 0)
    const level = left / weights
    const sated = [...open].filter((i) => demands[i]!.demand <= level * demands[i]!.weight)
    for (const i of sated.length > 0 ? sated : open) {
      given[i] = sated.length > 0 ? demands[i]!.demand : level * demands[i]!.weight
      left -= given[i]!
      open.delete(i)
    }
  }
  return given
}

export async function expectMaxMinShares(parties: readonly Party[]): Promise<void> {
  const { report } = await journalOf(scenarioOf(parties), { seed: 3 })
  const weights = parties.reduce((sum, { weight }) => sum + weight, 0)
  const wanted = maxMin(
    parties.map(({ weight, asks }) => ({
      weight,
      demand: asks * CAPACITY_PER_S * (weight / weights) * MEAN_COST * report.durationS,
    })),
    report.served,
  )
  parties.forEach((_party, i) => {
    // Light tenants send what chance lets them: some hundred requests of a Poisson stream are within a twelfth.
    expect(Math.abs(report.tenants[`t${i}`]!.served / wanted[i]! - 1)).toBeLessThan(0.08)
  })
}
