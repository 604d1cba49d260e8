import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** Judges and a guard model: the same code as live, with drawn scores. Engines that are crowded take long to simulate. */

describe('scenarios of screening', () => {
  it('guarded', { timeout: 120_000 }, async () => {
    expect(failuresOf(await runNamed('guarded', 1, { durationS: 60 }))).toEqual([])
  })
})
