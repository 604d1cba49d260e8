import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/**
 * The shipped scenarios hold what they expect. Here with one seed, and shortened where that stays meaningful; whole in
 * `whole.long.test.ts`, with other seeds by `spillway simulate NAME --seed N`. Half of them are in `trouble.test.ts`, so
 * that two cores share them.
 */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  baseline: { durationS: 40 },
  'come-back': { durationS: 60 },
  'small-tenants': { durationS: 60 },
}

describe('scenarios of overload', () => {
  it.each(['baseline', 'budgets', 'viral-spike-20x', 'small-tenants', 'reference-a100', 'come-back'])(
    '%s',
    { timeout: 120_000 },
    async (name) => {
      expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
    },
  )
})
