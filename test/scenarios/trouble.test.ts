import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** Neighbours, liars, storms and a lost replica. See `overload.test.ts`. */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'hang-up-storm': { durationS: 30 },
  'lying-clients': { durationS: 60 },
  'noisy-neighbour': { durationS: 60 },
}
const NAMES = ['noisy-neighbour', 'lying-clients', 'disconnect-storm', 'hang-up-storm', 'huge-prompts', 'replica-loss']

describe('scenarios of trouble', () => {
  it.each(NAMES)('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
  })
})
