import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** The shipped scenarios that `npm test` runs shortened, as they are shipped: all loads, all variants, to the end. */
const NAMES = ['saturated', 'small-tenants', 'noisy-neighbour', 'prefix-heavy', 'answer-cache', 'good-canary']

describe('whole scenarios', () => {
  it.each(NAMES)('%s', { timeout: 240_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1))).toEqual([])
  })
})
