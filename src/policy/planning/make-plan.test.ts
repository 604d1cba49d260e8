import { describe, expect, it } from 'vitest'
import { makeRelease } from '../../../test/support/fleet.ts'
import type { Model } from '../../domain/fleet.ts'
import type { Request, Segment } from '../../domain/request.ts'
import type { RungTerms } from '../../domain/rung.ts'
import { makeConstantSpeed, weightedTokens } from './cost.ts'
import { isSameWork, makePlan, type Planned, type PlanningFacts } from './make-plan.ts'

const FULL: RungTerms = {
  name: 'full',
  depth: 0,
  contextRatioMax: 1,
  contextTokensFloor: 0,
  outputTokensMax: undefined,
  isFallbackUsed: false,
  shedBands: [],
}

const model = (over: Partial<Model>): Model => ({
  name: 'big',
  aliases: [],
  contextTokensMax: 4_096,
  outputTokensDefault: 500,
  fallback: 'small',
  createdAtS: 0,
  releases: [`${over.name ?? 'big'}@1`],
  ...over,
})

const MODELS: Readonly<Record<string, Model>> = {
  big: model({}),
  small: model({ name: 'small', fallback: undefined, contextTokensMax: 2_048 }),
}

const facts: PlanningFacts = {
  model: (name) => MODELS[name],
  releaseOf: (name) => MODELS[name] && makeRelease(MODELS[name]),
  speedOf: () => makeConstantSpeed({ prefillUsPerToken: 20, tokenUs: 12_000 }),
  correctTokens: (_, name, tokens) => (name === 'small' ? Math.ceil(tokens * 1.25) : tokens),
  predictOutput: (_, cap) => ({
    tokens: Math.min(cap, 120),
    tokensHigh: Math.min(cap, 400),
    tokensMean: Math.min(cap, 150),
    source: 'habit',
  }),
  cachedTokensOf: () => 600,
  outputWeight: 4,
}

const turns = (count: number, tokens: number): Segment[] =>
  Array.from({ length: count }, (_, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', tokens }))

const request = (over: Partial<Request> = {}): Request =>
  ({ model: 'big', segments: [{ role: 'system', tokens: 200 }, ...turns(7, 100)], choiceCount: 1, ...over }) as Request

const planOf = (planned: Planned) => {
  if (planned.kind !== 'planned') throw new Error(planned.because)
  return planned.plan
}

describe('make plan', () => {
  it('plans in full: everything asked for, costed', () => {
    const plan = planOf(makePlan(request({ outputTokensMax: 1_000 }), FULL, facts))
    expect(plan).toMatchObject({ model: 'big', outputTokensMax: 1_000, keptSegments: [0, 1, 2, 3, 4, 5, 6, 7] })
    expect(plan.estimate).toEqual({
      promptTokens: 900,
      cachedTokens: 600,
      outputTokens: 120,
      outputTokensHigh: 400,
      cost: 300 + 4 * 120,
      meanCost: 300 + 4 * 150,
      engineUs: 300 * 20 + 119 * 12_000,
    })
  })

  describe('what is sent, and what is planned with', () => {
    const unbounded: PlanningFacts = { ...facts, model: (name) => MODELS[name] && withoutBound(MODELS[name]) }
    const withoutBound = ({ outputTokensDefault: _default, ...rest }: Model): Model => rest
    const stranger = (output: number): PlanningFacts => ({
      ...unbounded,
      predictOutput: () => ({ tokens: 120, tokensHigh: output, tokensMean: 150, source: 'prior' }),
    })
    const retrieval = { corpus: 'c', query: 'q', passagesMax: 8 }
    const CAPPED = { ...FULL, outputTokensMax: 256 }

    it.each([
      ['nothing, where nobody has a bound', request(), FULL, unbounded, undefined, 4_096 - 900],
      ['the client’s bound', request({ outputTokensMax: 50 }), FULL, unbounded, 50, 50],
      ['the rung’s bound', request(), CAPPED, unbounded, 256, 256],
      ['the operator’s bound', request(), FULL, facts, 500, 500],
      [
        'no rung’s bound on an answer that must end whole',
        request({ mustEndWhole: true }),
        CAPPED,
        unbounded,
        undefined,
        3_196,
      ],
      ['none that an estimate could be wrong about', request({ isEstimated: true }), FULL, unbounded, undefined, 4_096],
      ['a bound of no tokens, planned with one', request({ outputTokensMax: 0 }), FULL, unbounded, 0, 1],
    ])('sends %s', (_, asked, rung, known, sent, most) => {
      const plan = planOf(makePlan(asked, rung, known))
      expect([plan.sentTokensMax, plan.outputTokensMax]).toEqual([sent, most])
    })

    it('plans an answer without a bound by what such answers had, and by more where nobody knows', () => {
      expect(planOf(makePlan(request(), FULL, unbounded)).estimate).not.toHaveProperty('outputTokensUnproven')
      expect(planOf(makePlan(request(), FULL, stranger(300))).estimate.outputTokensUnproven).toBe(1_024)
      expect(planOf(makePlan(request(), FULL, stranger(2_000))).estimate.outputTokensUnproven).toBe(2_000)
    })

    it('keeps room for passages beside what is planned, not beside the whole window', () => {
      const roomOf = (known: PlanningFacts) =>
        planOf(makePlan(request({ retrieval }), FULL, known)).passageRoom?.tokensMax
      expect(roomOf(unbounded)).toBe(4_096 - 900 - 400)
      expect(roomOf(stranger(300))).toBe(4_096 - 900 - 1_024)
    })
  })

  it('gives the operator’s bound to who asks for nothing, and no more than the window holds', () => {
    expect(planOf(makePlan(request(), FULL, facts)).outputTokensMax).toBe(500)
    expect(planOf(makePlan(request({ outputTokensMax: 9_999 }), FULL, facts)).outputTokensMax).toBe(4_096 - 900)
  })

  it('trims, caps and downgrades as the rung says, and never adds', () => {
    const rung = { ...FULL, contextRatioMax: 0.5, outputTokensMax: 64, isFallbackUsed: true }
    const plan = planOf(makePlan(request({ outputTokensMax: 1_000 }), rung, facts))
    expect(plan).toMatchObject({ model: 'small', outputTokensMax: 64, keptSegments: [0, 7] })
    // What is cached of a trimmed prompt is at most what stands before the first gap, in that model's tokens.
    expect(plan.estimate).toMatchObject({ promptTokens: 375, cachedTokens: 250, outputTokens: 64 })
    expect(planOf(makePlan(request({ outputTokensMax: 10 }), rung, facts)).outputTokensMax).toBe(10)
  })

  it('never shortens an answer that must end whole, and judges it at its full length', () => {
    const capped = { ...FULL, depth: 1, contextRatioMax: 0.5, outputTokensMax: 64 }
    const whole = request({ outputTokensMax: 1_000, mustEndWhole: true })
    const plan = planOf(makePlan(whole, capped, facts))
    expect(plan).toMatchObject({ outputTokensMax: 1_000, keptSegments: [0, 7] })
    expect(plan.estimate).toMatchObject({ outputTokens: 120, outputTokensHigh: 400 })
    expect(isSameWork(plan, planOf(makePlan(whole, { ...capped, outputTokensMax: undefined }, facts)))).toBe(true)
  })

  it('counts every choice in cost and room, and one in time', () => {
    const one = planOf(makePlan(request(), FULL, facts)).estimate
    const three = planOf(makePlan(request({ choiceCount: 3 }), FULL, facts)).estimate
    expect(three).toMatchObject({ outputTokens: 360, outputTokensHigh: 1_200, engineUs: one.engineUs })
    expect(three.cost - one.cost).toBe(4 * 240)
  })

  it('says why it cannot', () => {
    expect(makePlan(request({ model: 'none' }), FULL, facts)).toMatchObject({ code: 'model-not-found' })
    const long = request({ segments: turns(1, 5_000) })
    expect(makePlan(long, FULL, facts)).toMatchObject({ kind: 'unplannable', code: 'context-length-exceeded' })
  })

  it('leaves a prompt that was not counted to the engine, however long it looks', () => {
    const long = request({ segments: turns(1, 5_000), isEstimated: true, outputTokensMax: 1_000 })
    const plan = planOf(makePlan(long, FULL, facts))
    expect(plan.outputTokensMax).toBe(256)
    expect(plan.estimate).toMatchObject({ promptTokens: 4_095, promptTokensMin: 2_500 })
    // Far beyond the window it is planned as filling the window, and no more.
    const endless = planOf(makePlan({ ...long, segments: turns(1, 500_000) }, FULL, facts))
    expect(endless.estimate).toMatchObject({ promptTokens: 4_095, promptTokensMin: 4_095 })
    const inOneGo = { ...long, kind: 'embedding' } as Request
    expect(makePlan(inOneGo, FULL, facts).kind).toBe('planned')
    expect(makePlan({ ...inOneGo, isEstimated: false }, FULL, facts).kind).toBe('unplannable')
  })

  it('corrects what was estimated and nothing else', () => {
    const doubled: PlanningFacts = { ...facts, correctTokens: (asked, _, n) => (asked.isEstimated ? 2 * n : n) }
    expect(planOf(makePlan(request(), FULL, doubled)).estimate.promptTokens).toBe(900)
    expect(planOf(makePlan(request(), FULL, doubled)).estimate.promptTokensMin).toBeUndefined()
    const estimated = planOf(makePlan(request({ isEstimated: true }), FULL, doubled)).estimate
    expect(estimated).toMatchObject({ promptTokens: 1_800, promptTokensMin: 450 })
  })

  it('counts what stands beside the messages on every rung', () => {
    const rung = { ...FULL, contextRatioMax: 0.5 }
    const kept = planOf(makePlan(request(), rung, facts)).estimate.promptTokens
    expect(planOf(makePlan(request({ fixedTokens: 700 }), rung, facts)).estimate.promptTokens).toBe(kept + 700)
    expect(makePlan(request({ fixedTokens: 4_000 }), FULL, facts)).toMatchObject({ code: 'context-length-exceeded' })
  })

  it('stays with the model that has no fallback', () => {
    const rung = { ...FULL, isFallbackUsed: true }
    const own = planOf(makePlan(request({ model: 'small' }), rung, facts))
    expect(own.model).toBe('small')
    expect(isSameWork(own, planOf(makePlan(request({ model: 'small' }), FULL, facts)))).toBe(true)
  })

  it('stays with the model that was asked for where the key may not use the fallback', () => {
    const rung = { ...FULL, isFallbackUsed: true }
    const ask = request({ modelsAllowed: ['other', request().model] })
    const own = planOf(makePlan(ask, rung, facts))
    expect(own.model).toBe(ask.model)
    expect(isSameWork(own, planOf(makePlan(ask, FULL, facts)))).toBe(true)
    expect(planOf(makePlan(request({ modelsAllowed: [ask.model, 'small'] }), rung, facts)).model).toBe('small')
    expect(planOf(makePlan(request(), rung, facts)).model).toBe('small')
  })

  it('charges measured work like predicted work', () => {
    expect(weightedTokens({ promptTokens: 1_000, cachedTokens: 600, outputTokens: 120 })).toBe(880)
    expect(weightedTokens({ promptTokens: 0, cachedTokens: 0, outputTokens: 0 })).toBe(1)
  })
})

describe('a transit', () => {
  const transit = request({ kind: 'transit', segments: [{ role: 'user', tokens: 800_000 }] })

  it('costs its price, which is neither a length nor a time', () => {
    const { estimate, outputTokensMax } = planOf(makePlan(transit, FULL, facts))
    expect(estimate).toMatchObject({ promptTokens: 800_000, cost: 800_000, engineUs: 0, outputTokensHigh: 0 })
    expect(outputTokensMax).toBe(0)
  })

  it('is never sent to a fallback', () => {
    const deepest = { ...FULL, name: 'smaller', depth: 3, isFallbackUsed: true }
    expect(planOf(makePlan(transit, deepest, facts))).toMatchObject({ model: 'big', rung: { name: 'full' } })
    expect(planOf(makePlan(request({ kind: 'embedding' }), deepest, facts)).model).toBe('small')
  })
})
