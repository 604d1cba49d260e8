import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/**
 * The shipped scenarios hold what they expect. Here with one seed, and shortened where that stays meaningful; whole in
 * `whole.long.test.ts`, with other seeds by `spillway simulate NAME --seed N`. Others are in
 * `trouble.test.ts`.
 */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  baseline: { durationS: 40 },
}

describe('scenarios of overload', () => {
  it.each(['baseline', 'budgets', 'viral-spike-20x'])('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
  })
})
