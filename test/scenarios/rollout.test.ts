import { describe, expect, it } from 'vitest'
import type { Platform } from '../../src/lifecycle/platform.ts'
import { failuresOf, journalOf, namedScenario, runNamed } from '../support/simulated.ts'

/** A release that is worse is rolled back before anybody notices; one that is not is promoted. */
describe('scenarios of a rollout', () => {
  it('bad-canary', { timeout: 120_000 }, async () => {
    expect(failuresOf(await runNamed('bad-canary', 1))).toEqual([])
  })

  const rollout = 'platform.models.0.rollout'
  /** A whole rollout in two minutes. */
  const QUICK = {
    durationS: 120,
    variants: {},
    expect: [],
    [`${rollout}.steps`]: [25, 50],
    [`${rollout}.dwellMs`]: 20_000,
    [`${rollout}.judge`]: { pairsMin: 100 },
  }

  /** The quick version of bench/experiments/canary.ts: a canary that is three times as busy is no worse for it. */
  it.each([11, 12, 13])('no difference, on a third of the replicas: seed %i', { timeout: 120_000 }, async (seed) => {
    const { report } = await runNamed('good-canary', seed, { ...QUICK, 'platform.pools.1.replicas': 1 })
    expect(report.rollouts['chat']).toMatchObject({ promoted: 1, rolledBack: 0 })
    expect(report.requests.failed).toBe(0)
  })

  /** Engines of which nothing is declared are learned, a slow one too: it must not be measured by what it taught. */
  it('a slow canary is rolled back, and an equal one is not, though their step times are learned', {
    timeout: 120_000,
  }, async () => {
    const backend = { kind: 'simulated', profile: 'h100-llama-8b', hidden: true }
    const hidden = { ...QUICK, 'platform.pools.0.backend': backend, 'platform.pools.1.backend': backend }
    const slow = { kind: 'replica-slow', target: 'chat@2', factor: 1.5, atS: 0, forS: 300 }
    const bad = await runNamed('bad-canary', 1, { ...hidden, 'faults.0': slow })
    expect(bad.report.rollouts['chat']).toMatchObject({ promoted: 0, rolledBack: 1 })
    const good = await runNamed('good-canary', 1, hidden)
    expect(good.report.rollouts['chat']).toMatchObject({ rolledBack: 0 })
  })

  /** At 5 % the canary is idle and the stable release full; it stays there, so that a wrong verdict has time to come. */
  const HELD = { load: 1.2, durationS: 250, variants: {}, expect: [], [`${rollout}.dwellMs`]: 1_000_000 }

  /** The quick version of bench/experiments/canary-loads.ts. */
  it.each([3, 4])('no difference, at 1.2 times the load: seed %i', { timeout: 120_000 }, async (seed) => {
    const { report } = await runNamed('good-canary', seed, HELD)
    expect(report.rollouts['chat']).toMatchObject({ rolledBack: 0, percent: 5 })
  })

  /** What the stable release has read often, a new one reads for the first time: it is no slower for it. */
  it.each([1, 2])('no difference, beginnings in common: seed %i', { timeout: 120_000 }, async (seed) => {
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
  })
})
