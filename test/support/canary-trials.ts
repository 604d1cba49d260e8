import { expect } from 'vitest'
import type { Platform } from '../../src/lifecycle/platform.ts'
import { journalOf, namedScenario, runNamed } from './simulated.ts'

/** Trials of a release that is no worse than the stable one, for the short and the long tests of a rollout. */
const rollout = 'platform.models.0.rollout'

/** A whole rollout in two minutes. */
export const QUICK = {
  durationS: 120,
  variants: {},
  expect: [],
  [`${rollout}.steps`]: [25, 50],
  [`${rollout}.dwellMs`]: 20_000,
  [`${rollout}.judge`]: { pairsMin: 100 },
}

/** At 5 % the canary is idle and the stable release full; it stays there, so that a wrong verdict has time to come. */
const HELD = { load: 1.2, durationS: 250, variants: {}, expect: [], [`${rollout}.dwellMs`]: 1_000_000 }

/** The quick version of bench/experiments/canary.ts: a canary that is three times as busy is no worse for it. */
export async function expectPromotionOnThirdOfReplicas(seed: number): Promise<void> {
  const { report } = await runNamed('good-canary', seed, { ...QUICK, 'platform.pools.1.replicas': 1 })
  expect(report.rollouts['chat']).toMatchObject({ promoted: 1, rolledBack: 0 })
  expect(report.requests.failed).toBe(0)
}

/** The quick version of bench/experiments/canary-loads.ts. */
export async function expectNoVerdictBesideFullRelease(seed: number): Promise<void> {
  const { report } = await runNamed('good-canary', seed, HELD)
  expect(report.rollouts['chat']).toMatchObject({ rolledBack: 0, percent: 5 })
}

/** What the stable release has read often, a new one reads for the first time: it is no slower for it. */
export async function expectNoVerdictOnCommonBeginnings(seed: number): Promise<void> {
  const prefix = { tokens: 1000, groups: 100, ratio: 1 }
  const scenario = namedScenario('good-canary', {
    ...HELD,
    durationS: 120,
    'workload.0.prefix': prefix,
    'workload.1.prefix': prefix,
  })
  let platform: Platform | undefined
  await journalOf(scenario, {
    seed,
    onAssembled: (assembled) => {
      platform = assembled
    },
  })
  const { evidence = [] } = platform?.policies.rollouts.get('chat')?.view().verdict ?? {}
  const ttft = evidence.find(({ metric }) => metric === 'ttft')
  expect(ttft?.pairs).toBeGreaterThan(100)
  expect(ttft?.won).toBeLessThan(10)
  expect(ttft?.proven).toBeGreaterThan(20)
}
