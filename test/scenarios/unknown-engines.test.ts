import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** Engines of which nothing is declared, and engines that are given too much at once. See `overload.test.ts`. */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'unknown-engine-busy': { durationS: 30 },
}
const NAMES = ['unknown-engine-calm', 'unknown-engine-busy', 'overshoot']

describe('scenarios of unknown engines', () => {
  it.each(NAMES)('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
  })
})
