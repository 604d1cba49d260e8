import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** The other half of the shipped scenarios: neighbours, liars, storms and faults. See `overload.test.ts`. */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'hang-up-storm': { durationS: 30 },
  'mixed-sizes': { durationS: 60 },
  'lying-clients': { durationS: 60 },
  'noisy-neighbour': { durationS: 60 },
}
const NAMES = [
  'noisy-neighbour',
  'mixed-sizes',
  'lying-clients',
  'disconnect-storm',
  'hang-up-storm',
  'huge-prompts',
  'huge-answers',
  'retry-storm',
  'replica-loss',
  'replica-slow',
  'blackout',
]

describe('scenarios of trouble', () => {
  it.each(NAMES)('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
  })
})
