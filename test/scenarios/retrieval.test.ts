import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** Retrieval that is slow: the same code as live, in a simulated world. Dead and lost retrieval: `whole.long.test.ts`. */
describe('scenarios of retrieval', () => {
  it('retrieval-slow', { timeout: 120_000 }, async () => {
    expect(failuresOf(await runNamed('retrieval-slow', 1))).toEqual([])
  })
})
