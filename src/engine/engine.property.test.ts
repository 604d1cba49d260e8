import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NaiveEngine, type NaiveOptions } from '../../test/support/naive-engine.ts'
import { type EngineTime, NO_ENGINE_TIME, spentUs as spentUsOf } from '../domain/engine-time.ts'
import { Engine } from './engine.ts'
import type { EngineEvent, FinishedEvent } from './engine-event.ts'
import type { RooflineCoefficients } from './gpu-profile.ts'
import type { SequenceSpec } from './sequence.ts'
import { constantAcceptance } from './speculation.ts'

/**
 * Random workloads on random small engines, against the naive twin. Small on purpose: with forty blocks of four tokens,
 * preemption, eviction, chunking and shared prefixes happen in nearly every run.
 */

interface Submit {
  readonly kind: 'submit'
  readonly gapUs: number
  readonly spec: Omit<SequenceSpec, 'id'>
}

interface Abort {
  readonly kind: 'abort'
  readonly gapUs: number
  /** Which of the sequences so far, as a share. */
  readonly which: number
}

type Operation = Submit | Abort

interface Scenario {
  readonly options: NaiveOptions
  readonly operations: readonly Operation[]
}

const coefficients = fc.record({
  kind: fc.constant('roofline' as const),
  weightsUs: fc.integer({ min: 0, max: 500 }),
  computeUsPerToken: fc.double({ min: 0.01, max: 5, noNaN: true }),
  kneeSharpness: fc.double({ min: 1, max: 5, noNaN: true }),
  lmHeadUs: fc.double({ min: 0, max: 20, noNaN: true }),
  decodeBaseUs: fc.double({ min: 0, max: 20, noNaN: true }),
  kvReadUsPerToken: fc.double({ min: 0, max: 1, noNaN: true }),
  contextUsPerToken: fc.double({ min: 0, max: 3, noNaN: true }),
  decodeUsPerSequence: fc.double({ min: 0, max: 2, noNaN: true }),
  prefillBaseUs: fc.double({ min: 0, max: 20, noNaN: true }),
  attentionUsPerPair: fc.double({ min: 0, max: 0.1, noNaN: true }),
  contextAttentionUsPerPair: fc.double({ min: 0, max: 0.1, noNaN: true }),
  allReduceBaseUs: fc.double({ min: 0, max: 5, noNaN: true }),
  allReduceUsPerToken: fc.double({ min: 0, max: 1, noNaN: true }),
  hostUs: fc.double({ min: 0, max: 20, noNaN: true }),
  prefillFloorUs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 800, noNaN: true })),
  prefillFloorSharpness: fc.constantFrom(1, 4),
  decodeFloorUs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 800, noNaN: true })),
}) satisfies fc.Arbitrary<RooflineCoefficients>

const scenarios: fc.Arbitrary<Scenario> = fc
  .record({
    coefficients,
    blockTokens: fc.constantFrom(1, 2, 4, 16),
    unitBlocks: fc.constantFrom(1, 1, 3),
    blockCount: fc.integer({ min: 24, max: 80 }),
    sequencesMax: fc.integer({ min: 1, max: 9 }),
    budgetSlack: fc.integer({ min: 1, max: 60 }),
    draftTokens: fc.constantFrom(0, 0, 1, 4),
    longPrefillTokens: fc.constantFrom(undefined, undefined, 3, 10, 40),
    batchWindowUs: fc.constantFrom(undefined, undefined, undefined, 0, 500, 10_000),
    acceptance: fc.double({ min: 0, max: 1, noNaN: true }),
    seed: fc.nat(),
  })
  .chain((drawn) => {
    const tokensMax = drawn.blockCount * drawn.blockTokens - drawn.draftTokens
    const options: NaiveOptions = {
      coefficients: drawn.coefficients,
      limits: {
        sequencesMax: drawn.sequencesMax,
        tokenBudget: drawn.sequencesMax * (1 + drawn.draftTokens) + drawn.budgetSlack,
        blockCount: drawn.blockCount,
        blockTokens: drawn.blockTokens,
        prefixUnitTokens: drawn.blockTokens * drawn.unitBlocks,
        ...(drawn.longPrefillTokens !== undefined && { longPrefillTokens: drawn.longPrefillTokens }),
        ...(drawn.batchWindowUs !== undefined && { staticBatching: { windowUs: drawn.batchWindowUs } }),
      },
      seed: drawn.seed,
      ...(drawn.draftTokens > 0 && {
        speculation: {
          draftTokens: drawn.draftTokens,
          acceptance: constantAcceptance(drawn.draftTokens, drawn.acceptance),
          draftUsPerToken: 7.3,
          draftUsPerSequenceToken: 0.4,
        },
      }),
    }
    return fc
      .array(operation(tokensMax), { minLength: 1, maxLength: 30 })
      .map((operations): Scenario => ({ options, operations }))
  })

function operation(tokensMax: number): fc.Arbitrary<Operation> {
  const gapUs = fc.oneof(fc.constant(0), fc.nat(300), fc.nat(20_000))
  const submit = fc.record({
    kind: fc.constant('submit' as const),
    gapUs,
    spec: fc
      .record({
        promptTokens: fc.integer({ min: 1, max: Math.floor(tokensMax / 2) }),
        outputTokens: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: Math.floor(tokensMax / 2) })),
        salt: fc.constantFrom('red', 'blue'),
        root: fc.constantFrom(0, 1, 2),
        reports: fc.constantFrom('few' as const, 'few' as const, 'every-step' as const),
      })
      .map(({ root, ...spec }) => ({
        ...spec,
        // Chained names: prompts with the same root share them up to a point that the root's second half decides.
        prefixHashes: root === 0 ? [] : Array.from({ length: 12 }, (_, i) => root * 100 + i),
      })),
  })
  const abort = fc.record({ kind: fc.constant('abort' as const), gapUs, which: fc.double({ min: 0, max: 0.999 }) })
  return fc.oneof({ weight: 5, arbitrary: submit }, { weight: 1, arbitrary: abort })
}

interface Run {
  readonly events: readonly EngineEvent[]
  readonly views: readonly object[]
  /** By sequence: its share of the engine's time, and the memory that it held. */
  readonly spentUs: ReadonlyMap<string, number>
  readonly kvTokenUs: ReadonlyMap<string, number>
}

/** `polls`: how the owner behaves between operations; it must not matter. */
function runEngine(scenario: Scenario, polls: 'punctual' | 'lazy' | 'nervous'): Run {
  const engine = new Engine(scenario.options)
  const events: EngineEvent[] = []
  const views: object[] = []
  const spentUs = new Map<string, number>()
  const kvTokenUs = new Map<string, number>()
  let now = 0
  let submitted = 0
  const note = (id: string, time: EngineTime | undefined): void => {
    spentUs.set(id, spentUsOf(time ?? NO_ENGINE_TIME))
    kvTokenUs.set(id, time?.kvTokenUs ?? 0)
  }
  /** Times are sums of fractions: they are compared apart, up to rounding. */
  const take = (fresh: readonly EngineEvent[]): void => {
    for (const event of fresh) {
      if (event.kind !== 'finished') events.push(event)
      else {
        const { time, ...told } = event
        events.push(told)
        note(event.id, time)
      }
    }
  }
  const pollUntil = (until: number): void => {
    if (polls === 'lazy') return
    for (let at = engine.nextEventAt(); at !== undefined && at < until; at = engine.nextEventAt()) {
      now = Math.max(now, polls === 'nervous' ? Math.min(at, now + 40) : at)
      if (now < until) take(engine.advance(now))
    }
  }
  for (const op of scenario.operations) {
    const opAt = now + op.gapUs
    pollUntil(opAt)
    now = opAt
    if (op.kind === 'submit') {
      expect(engine.submit(now, { ...op.spec, id: `s${submitted++}` })).toEqual({ kind: 'taken' })
    } else {
      const abortion = engine.abort(now, `s${Math.floor(op.which * submitted)}`)
      views.push({ aborted: abortion?.usage.outputTokens })
      if (abortion !== undefined) note(abortion.id, abortion.time)
    }
    const { running, waiting, blocksFree, steps, preemptions } = engine.view(now)
    views.push({ running, waiting, blocksFree, steps, preemptions })
    engine.assertInvariants()
  }
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) {
    take(engine.advance(at))
    engine.assertInvariants()
  }
  const { blocksFree, blockCount } = engine.view(Number.MAX_SAFE_INTEGER)
  expect(blocksFree).toBe(blockCount)
  return { events, views, spentUs, kvTokenUs }
}

function runTwin(scenario: Scenario): Run {
  const twin = new NaiveEngine(scenario.options)
  const views: object[] = []
  let now = 0
  let submitted = 0
  for (const op of scenario.operations) {
    now += op.gapUs
    if (op.kind === 'submit') twin.submit(now, { ...op.spec, id: `s${submitted++}` })
    else views.push({ aborted: twin.abort(now, `s${Math.floor(op.which * submitted)}`) })
    const { running, waiting, blocksFree } = twin
    views.push({ running, waiting, blocksFree, steps: twin.stepCount, preemptions: twin.preemptionCount })
  }
  twin.runTo(Number.MAX_SAFE_INTEGER)
  return { events: twin.events, views, spentUs: twin.spentUs, kvTokenUs: twin.kvTokenUs }
}

const check = (property: (scenario: Scenario) => void, numRuns = 300): void =>
  fc.assert(fc.property(scenarios, property), { numRuns })

describe('an engine on random work', () => {
  it('does what its naive twin does, to the microsecond', () => {
    check((scenario) => {
      const engine = runEngine(scenario, 'lazy')
      const twin = runTwin(scenario)
      expect(engine.views).toEqual(twin.views)
      expect(engine.events).toEqual(twin.events)
    }, 600)
  })

  it('does not depend on how often it is asked', () => {
    check((scenario) => {
      const { spentUs, kvTokenUs, ...lazy } = runEngine(scenario, 'lazy')
      for (const polls of ['punctual', 'nervous'] as const) {
        const { spentUs: otherUs, kvTokenUs: otherKv, ...other } = runEngine(scenario, polls)
        expect(other).toEqual(lazy)
        expectClose(otherUs, spentUs)
        expectClose(otherKv, kvTokenUs)
      }
    })
  })

  it('gives every sequence its share of every step, as its naive twin splits them one by one', () => {
    check((scenario) => {
      const engine = runEngine(scenario, 'nervous')
      const twin = runTwin(scenario)
      expect([...engine.spentUs.values()].every((us) => us >= 0)).toBe(true)
      expectClose(engine.spentUs, twin.spentUs)
      expectClose(engine.kvTokenUs, twin.kvTokenUs)
    }, 600)
  })

  /** What never ran has no share, in one account or in both. */
  function expectClose(actual: ReadonlyMap<string, number>, expected: ReadonlyMap<string, number>): void {
    for (const id of new Set([...actual.keys(), ...expected.keys()])) {
      const [a, b] = [actual.get(id) ?? 0, expected.get(id) ?? 0]
      expect(Math.abs(a - b)).toBeLessThanOrEqual(1e-5 * Math.max(1, b))
    }
  }

  it('gives every sequence exactly its tokens, in order, whatever was preempted (L5)', () => {
    check((scenario) => {
      const { events } = runEngine(scenario, 'punctual')
      const tokens = new Map<string, number>()
      const ended = new Set<string>()
      let previousAt = 0
      for (const event of events) {
        expect(event.at).toBeGreaterThanOrEqual(previousAt)
        expect(ended.has(event.id)).toBe(false)
        previousAt = event.at
        if (event.kind === 'first-token') expect(tokens.has(event.id)).toBe(false)
        const brought = event.kind === 'first-token' ? 1 : event.tokens
        tokens.set(event.id, (tokens.get(event.id) ?? 0) + brought)
        if (event.kind === 'finished') {
          ended.add(event.id)
          expectWhole(event, tokens.get(event.id) as number)
        }
      }
    })
  })

  function expectWhole(event: FinishedEvent, tokens: number): void {
    expect(tokens).toBe(event.usage.outputTokens)
    expect(event.arrivedAt).toBeLessThanOrEqual(event.firstTokenAt)
    expect(event.firstTokenAt).toBeLessThanOrEqual(event.at)
    expect(event.usage.cachedTokens).toBeLessThan(event.usage.promptTokens)
  }

  it('repeats itself (L9)', () => {
    check((scenario) => {
      expect(runEngine(scenario, 'punctual')).toEqual(runEngine(scenario, 'punctual'))
    }, 50)
  })

  it('never reuses a prefix across salts (L13)', () => {
    check((scenario) => {
      // The same work with every sequence under a salt of its own must find nothing in the cache.
      let count = 0
      const operations = scenario.operations.map((op) =>
        op.kind === 'submit' ? { ...op, spec: { ...op.spec, salt: `own-${count++}` } } : op,
      )
      const { events } = runEngine({ ...scenario, operations }, 'punctual')
      const cached = events.map((event) => (event.kind === 'finished' ? event.usage.cachedTokens : 0))
      expect(cached.every((tokens) => tokens === 0)).toBe(true)
    })
  })
})
