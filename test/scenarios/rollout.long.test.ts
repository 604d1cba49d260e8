import { describe, it } from 'vitest'
import {
  expectNoVerdictBesideFullRelease,
  expectNoVerdictOnCommonBeginnings,
  expectPromotionOnThirdOfReplicas,
} from '../support/canary-trials.ts'

/** More seeds than `rollout.test.ts`. The shipped scenarios bad-canary and good-canary run in `whole.long.test.ts`. */
describe('scenarios of a rollout', { timeout: 120_000 }, () => {
  it.each([12, 13])('no difference, on a third of the replicas: seed %i', (seed) =>
    expectPromotionOnThirdOfReplicas(seed),
  )

  it.each([3, 4])('no difference, at 1.2 times the load: seed %i', (seed) => expectNoVerdictBesideFullRelease(seed))

  it.each([1, 2])('no difference, beginnings in common: seed %i', (seed) => expectNoVerdictOnCommonBeginnings(seed))
})
