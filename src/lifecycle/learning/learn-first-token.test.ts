import { describe, expect, it, vi } from 'vitest'
import { Calibration } from '../../policy/admission/calibration.ts'
import type { Attempt } from '../ticket.ts'
import { learnFirstToken } from './learn-first-token.ts'

/** An attempt that was admitted at 0 and expected its first token after 50 ms. */
function makeAttempt(isTelling: boolean, tokensPerChoice: number): Attempt {
  const predicted = { ttftUs: 50_000, finishUs: 500_000 }
  const patience = { ttftUs: 1_000_000, finishUs: 9_000_000 }
  const admitted = { at: 0, predicted, patience, poolId: 'p' }
  const ticket = { request: { slo: { name: 'people' } } }
  return { ticket, admitted, plan: { estimate: { promptTokens: 9 } }, isTelling, tokensPerChoice } as unknown as Attempt
}

describe('when a first token came', () => {
  it.each([
    ['a stream', true, 1, 1],
    ['a stream whose first frame has several tokens', true, 8, 1],
    ['a whole answer of one token', false, 1, 1],
    ['a whole answer of several tokens, which came with the last of them', false, 200, 0],
  ])('is told by %s, or not', (_, isTelling, tokens, times) => {
    const calibration = new Calibration()
    const begun = vi.spyOn(calibration, 'begun')
    learnFirstToken(calibration, makeAttempt(isTelling, tokens), 520_000)
    expect(begun).toHaveBeenCalledTimes(times)
  })
})
