import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** Judges and a guard model: the same code as live, with drawn scores. Engines that are crowded take long to simulate. */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = { guarded: { durationS: 60 } }

describe('scenarios of screening', () => {
  it.each(['guarded', 'guard-loss'])('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
  })
})
