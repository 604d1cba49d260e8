import { describe, expect, it } from 'vitest'
import { makeEstimate, makeTenant } from '../../../test/support/demand.ts'
import type { EngineSpeed } from '../../domain/engine-speed.ts'
import type { Plan } from '../../domain/plan.ts'
import type { Request } from '../../domain/request.ts'
import { patienceOf, predict } from './feasibility.ts'

/** 10 µs a prompt token that is not cached; a token takes 1 ms and a microsecond for each token of context. */
const SPEED: EngineSpeed = {
  prefillUs: (uncachedTokens) => 10 * uncachedTokens,
  tokenUs: (contextTokens) => 1_000 + contextTokens,
}

const planOf = (promptTokens: number, outputTokens: number, cachedTokens = 0): Plan =>
  ({ estimate: makeEstimate(promptTokens, outputTokens, { cachedTokens }) }) as Plan

describe('the predicted times of a plan', () => {
  it('are the wait, the prefill of what is not cached, and a step for each further token', () => {
    // The first of 101 tokens comes with the prefill; the others see 200 + 51 tokens of context in the mean.
    expect(predict(planOf(200, 101, 50), 1, SPEED, 700)).toEqual({
      waitUs: 700,
      ttftUs: 700 + 1_500,
      finishUs: 700 + 1_500 + 100 * 1_251,
    })
  })

  it('are those of one choice where several are generated side by side', () => {
    const one = predict(planOf(200, 101), 1, SPEED, 0)
    for (const count of [2, 4, 8]) expect(predict(planOf(200, 101 * count), count, SPEED, 0)).toEqual(one)
  })

  it('have no decoding where at most one token is asked for', () => {
    for (const tokens of [0, 1]) {
      const { ttftUs, finishUs } = predict(planOf(200, tokens), 1, SPEED, 5)
      expect([ttftUs, finishUs]).toEqual([2_005, 2_005])
    }
  })

  it('have no prefill where all of the prompt is cached', () => {
    expect(predict(planOf(200, 1, 300), 1, SPEED, 5).ttftUs).toBe(5)
  })
})

describe('the time that is left', () => {
  it('runs from the arrival for the first token, and to the deadline for the end', () => {
    const { slo } = makeTenant('a')
    const request = { band: 'standard', slo, arrivedAt: 1_000, deadlineAt: 50_000_000 } as Request
    const { ttftUs } = slo
    expect(patienceOf(4_000, request)).toEqual({ ttftUs: ttftUs - 3_000, finishUs: 49_996_000 })
    expect(patienceOf(4_000, { ...request, band: 'offline' })).toEqual({
      ttftUs: Number.POSITIVE_INFINITY,
      finishUs: 49_996_000,
    })
  })
})
