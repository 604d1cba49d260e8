import { describe, expect, it } from 'vitest'
import { failuresOf, runNamed } from '../support/simulated.ts'

/** Retrieval that is slow, dead or lost, and answers that are known already: the same code as live, in a simulated world. */
const SHORTER: Readonly<Record<string, Readonly<Record<string, unknown>>>> = { 'answer-cache': { durationS: 90 } }

describe('scenarios of retrieval', () => {
  it.each(['retrieval-slow', 'retrieval-dead', 'answer-cache'])('%s', { timeout: 120_000 }, async (name) => {
    expect(failuresOf(await runNamed(name, 1, SHORTER[name]))).toEqual([])
  })
})
