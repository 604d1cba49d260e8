import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** A release that is worse is rolled back before anybody notices; one that is not is promoted. */
describe('scenarios of a rollout', () => {
  it.each(['bad-canary', 'good-canary'])('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1))).toEqual([])
  })
})
