import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** A release that is worse is rolled back before anybody notices; one that is not is promoted. */
describe('scenarios of a rollout', () => {
  it('bad-canary', { timeout: 120_000 }, async () => {
    expect(failuresOf(await runNamed('bad-canary', 1))).toEqual([])
  })

  /** The quick version of bench/experiments/canary.ts: a canary that is three times as busy is no worse for it. */
  it.each([11, 12, 13])('no difference, on a third of the replicas: seed %i', { timeout: 120_000 }, async (seed) => {
    const rollout = 'platform.models.0.rollout'
    const { report } = await runNamed('good-canary', seed, {
      durationS: 120,
      variants: {},
      expect: [],
      'platform.pools.1.replicas': 1,
      [`${rollout}.steps`]: [25, 50],
      [`${rollout}.dwellMs`]: 20_000,
      [`${rollout}.judge`]: { pairsMin: 100 },
    })
    expect(report.rollouts['chat']).toMatchObject({ promoted: 1, rolledBack: 0 })
    expect(report.requests.failed).toBe(0)
  })
})
