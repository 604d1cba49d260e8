import { describe, expect, it } from 'vitest'
import { expectPromotionOnThirdOfReplicas, QUICK } from '../support/canary-trials.ts'
import { runNamed } from '../support/simulated.ts'

/** A release that is worse is rolled back; one that is not is promoted. More seeds: `rollout.long.test.ts`. */
describe('scenarios of a rollout', { timeout: 120_000 }, () => {
  it('no difference, on a third of the replicas', () => expectPromotionOnThirdOfReplicas(11))

  /** Engines of which nothing is declared are learned, a slow one too: it must not be measured by what it taught. */
  it('a slow canary is rolled back, and an equal one is not, though their step times are learned', async () => {
    const backend = { kind: 'simulated', profile: 'h100-llama-8b', hidden: true }
    const hidden = { ...QUICK, 'platform.pools.0.backend': backend, 'platform.pools.1.backend': backend }
    const slow = { kind: 'replica-slow', target: 'chat@2', factor: 1.5, atS: 0, forS: 300 }
    const bad = await runNamed('bad-canary', 1, { ...hidden, 'faults.0': slow })
    expect(bad.report.rollouts['chat']).toMatchObject({ promoted: 0, rolledBack: 1 })
    const good = await runNamed('good-canary', 1, hidden)
    expect(good.report.rollouts['chat']).toMatchObject({ rolledBack: 0 })
  })
})
