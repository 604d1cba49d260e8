import type { Fault, Scenario } from '../../src/sim/scenario/scenario.ts'
import { Draw } from './draw-scenario.ts'

/**
 * The same scenario spread over several pools, and often over several regions with a gateway each: some models are served
 * in one region only, some tenants have a pool of their own, regions are lost and come back. Drawn from a stream of its
 * own, so that the scenario before it stays as it was.
 */
export function spreadOut(scenario: Scenario, seed: number): Scenario {
  const draw = new Draw(seed, 'swarm-regions')
  if (draw.isTrue(0.3)) return scenario
  const regions = ['local', 'far', 'farther'].slice(0, draw.between(1, 3))
  const platform = scenario.platform as { pools: Record<string, unknown>[]; tenants: { id: string }[] }
  const [large, ...others] = platform.pools as [Record<string, unknown>, ...Record<string, unknown>[]]
  const copies = regions.slice(1).map((region) => ({ ...large, region, replicas: draw.between(1, 3) }))
  const tenant = draw.of(platform.tenants).id
  const own = draw.isTrue(0.3)
    ? [{ ...large, id: 'own', region: draw.of(regions), replicas: 1, dedicatedTo: [tenant] }]
    : []
  const hasGateways = regions.length > 1 && draw.isTrue(0.8)
  return {
    ...scenario,
    platform: {
      ...platform,
      pools: [large, ...others, ...copies, ...own],
      regions: {
        spillMarginMs: draw.of([0, 100]),
        returnMs: draw.of([1, 3_000]),
        ...(hasGateways ? {} : { local: 'local' }),
      },
      routing: { rule: draw.of(['soonest-first-token', 'soonest-first-token', 'round-robin']) },
    },
    ...(hasGateways ? { regions: { roundTrips: [{ between: ['local', 'far'], ms: draw.of([0, 20, 300]) }] } } : {}),
    workload: scenario.workload.map((stream) => (hasGateways ? { ...stream, region: draw.of(regions) } : stream)),
    faults: [
      ...(scenario.faults ?? []),
      ...Array.from({ length: draw.of([0, 1, 1, 2]) }, (): Fault => {
        const kind = draw.of(['region-loss', 'region-loss', 'rolling-restart'] as const)
        const target = kind === 'region-loss' ? draw.of(regions) : 'large-local'
        return { kind, target, atS: draw.between(0, scenario.durationS - 1), forS: draw.of([0.1, 2, 30]) }
      }),
    ],
  }
}
