import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { makeEstimate } from '../../../test/support/demand.ts'
import type { StepModel } from '../../domain/engine-speed.ts'
import { AIMD_LIMIT_DEFAULTS, AimdLimit } from './aimd.ts'
import { FixedLimit } from './fixed.ts'
import { GRADIENT_LIMIT_DEFAULTS, GradientLimit } from './gradient.ts'
import { Ledger } from './ledger.ts'
import type { Limit } from './limit.ts'
import { ReportedLimit } from './reported.ts'

const MODEL: StepModel = {
  meanTokenUs: (sequences, context, prefill) => 6_000 + 100 * sequences + 0.02 * context + 5 * prefill,
}

function loadOf(sequences: number, prompt = 100, output = 100): Ledger {
  const ledger = new Ledger()
  for (let i = 0; i < sequences; i++) ledger.hold(makeEstimate(prompt, output))
  return ledger
}

const good = (firstTokenUs: number) => ({ firstTokenUs, meanTokenUs: undefined, isDropped: false })
const DROPPED = { firstTokenUs: undefined, meanTokenUs: undefined, isDropped: true }

/** How many of these a replica would take, one after the other. */
function roomFor(limit: Limit, prompt: number, output: number): number {
  const ledger = new Ledger()
  const estimate = makeEstimate(prompt, output)
  while (ledger.sequences < 1_000 && limit.fits(ledger, estimate)) {
    ledger.hold(estimate)
    ledger.begin(estimate)
  }
  return ledger.sequences
}

describe('every limit', () => {
  const limits: Array<[string, () => Limit]> = [
    ['fixed', () => new FixedLimit({ sequencesMax: 20 })],
    ['aimd', () => new AimdLimit()],
    ['gradient', () => new GradientLimit()],
    ['reported', () => new ReportedLimit({ model: MODEL, promise: { ttftUs: 1_000_000, interTokenUs: 20_000 } })],
  ]

  test.each(limits)('%s: says how full it is, so that more like those there would fill it', (_name, make) => {
    const limit = make()
    const most = roomFor(limit, 100, 100)
    const half = loadOf(0)
    for (let i = 0; i < Math.floor(most / 2); i++) half.hold(makeEstimate(100, 100))
    expect(limit.fullness(new Ledger())).toBe(0)
    expect(half.sequences / limit.fullness(half)).toBeGreaterThan(0.95 * most)
    expect(half.sequences / limit.fullness(half)).toBeLessThan(1.05 * most + 1)
  })

  test.each(limits)('%s: full means that nothing fits, after any samples', (_name, make) => {
    const sample = fc.record({
      firstTokenUs: fc.option(fc.integer({ min: 1, max: 5_000_000 }), { nil: undefined }),
      meanTokenUs: fc.option(fc.integer({ min: 100, max: 500_000 }), { nil: undefined }),
      isDropped: fc.boolean(),
      sequences: fc.nat(80),
      afterUs: fc.nat(2_000_000),
    })
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 60 }), fc.nat(300), fc.nat(3_000), (samples, held, prompt) => {
        const limit = make()
        let now = 0
        for (const { sequences, afterUs, ...one } of samples) {
          now += afterUs
          limit.observe(now, one, loadOf(sequences))
          const { sequencesMax } = limit.view()
          expect(sequencesMax).toBeGreaterThanOrEqual(1)
          expect(sequencesMax).toBeLessThanOrEqual(256)
        }
        const load = loadOf(held)
        const fits = limit.fits(load, makeEstimate(prompt, 50))
        expect(limit.isFull(load) && fits).toBe(false)
        expect(fits && load.sequences >= limit.view().sequencesMax).toBe(false)
      }),
      { numRuns: 100 },
    )
  })
})

describe('aimd', () => {
  test('grows by about one a batch while in use, and a tenth less once for one overload', () => {
    const limit = new AimdLimit({ ...AIMD_LIMIT_DEFAULTS, sequencesInitial: 20 })
    for (let i = 0; i < 21; i++) limit.observe(i, good(100_000), loadOf(20))
    expect(limit.view().sequencesMax).toBe(21)
    for (let i = 0; i < 20; i++) limit.observe(1_000 + i, DROPPED, loadOf(20))
    expect(limit.view().sequencesMax).toBe(18)
    for (let i = 0; i < 1_000; i++) limit.observe(2_000 + i, good(100_000), loadOf(3))
    expect(limit.view().sequencesMax).toBe(18)
  })

  test('finds the capacity of an engine that refuses beyond 40', () => {
    const limit = new AimdLimit()
    let now = 0
    const seen: number[] = []
    for (let i = 0; i < 40_000; i++) {
      now += 20_000
      const { sequencesMax } = limit.view()
      limit.observe(now, sequencesMax > 40 ? DROPPED : good(100_000), loadOf(sequencesMax))
      if (i > 20_000) seen.push(sequencesMax)
    }
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(34)
    expect(Math.max(...seen)).toBeLessThanOrEqual(42)
  })
})

describe('gradient', () => {
  /** An engine with 32 slots: beyond them the first token waits for others to finish. */
  function run(slots: number, seconds: number): number {
    const limit = new GradientLimit(GRADIENT_LIMIT_DEFAULTS)
    for (let s = 0; s < seconds; s++) {
      const { sequencesMax } = limit.view()
      const queued = Math.max(0, sequencesMax - slots)
      for (let i = 0; i < 20; i++) {
        limit.observe(s * 1_000_000 + i, good(200_000 + (queued * 4_000_000) / slots), loadOf(sequencesMax))
      }
    }
    return limit.view().sequencesMax
  }

  test('settles a little above the slots of the engine, from below', () => {
    expect(run(32, 120)).toBeGreaterThanOrEqual(32)
    expect(run(32, 120)).toBeLessThanOrEqual(64)
  })

  test('does not grow while it is not in use', () => {
    const limit = new GradientLimit()
    for (let i = 0; i < 5_000; i++) limit.observe(i * 100_000, good(200_000), loadOf(2))
    expect(limit.view().sequencesMax).toBe(GRADIENT_LIMIT_DEFAULTS.sequencesInitial)
  })

  test('halves its way down when everything is refused', () => {
    const limit = new GradientLimit()
    for (let i = 0; i < 5_000; i++) limit.observe(i * 100_000, DROPPED, loadOf(16))
    expect(limit.view().sequencesMax).toBe(1)
  })
})

describe('reported', () => {
  const limit = (): ReportedLimit =>
    new ReportedLimit({ model: MODEL, promise: { ttftUs: 1_000_000, interTokenUs: 25_000 } })

  test('takes fewer when prompts are long against answers, and some whatever the model says', () => {
    expect(roomFor(limit(), 1_000, 200)).toBe(103)
    expect(roomFor(limit(), 1_000, 20)).toBe(41)
    expect(roomFor(limit(), 100_000, 1)).toBe(2)
  })

  test('follows the promise: a limit that was made before aims at the one of today', () => {
    const promise = { ttftUs: 1_000_000, interTokenUs: 25_000 }
    const followed = new ReportedLimit({ model: MODEL, promise })
    expect(roomFor(followed, 1_000, 200)).toBe(103)
    promise.interTokenUs = 12_500
    const tighter = new ReportedLimit({ model: MODEL, promise: { ttftUs: 1_000_000, interTokenUs: 12_500 } })
    expect(roomFor(followed, 1_000, 200)).toBe(roomFor(tighter, 1_000, 200))
    expect(roomFor(followed, 1_000, 200)).toBeLessThan(103)
    expect(followed.view()).toEqual(tighter.view())
  })

  test('takes no more while the prompts that it has not begun to answer fill a step', () => {
    const ledger = new Ledger()
    const estimate = makeEstimate(1_500, 200)
    ledger.hold(estimate)
    expect(limit().fits(ledger, estimate)).toBe(true)
    ledger.hold(estimate)
    expect(limit().isFull(ledger)).toBe(true)
    ledger.begin(estimate)
    expect(limit().fits(ledger, makeEstimate(9_000, 2_000))).toBe(true)
  })

  test('in a calm engine as many as delay a newcomer by a tenth of its promise', () => {
    const promise = { ttftUs: 1_000_000, interTokenUs: 50_000 }
    const calm = new ReportedLimit({ model: MODEL, promise, options: { calmUnreadRatio: 0.1 } })
    const ledger = new Ledger()
    const estimate = makeEstimate(1_500, 200)
    for (let i = 0; i < 3; i++) ledger.hold(estimate)
    // 4,500 tokens at 5 µs are 22 ms, of 100 that are allowed; a step's worth is 2,048.
    expect(calm.fits(ledger, estimate)).toBe(true)
    expect(new ReportedLimit({ model: MODEL, promise }).fits(ledger, estimate)).toBe(false)
    for (let i = 0; i < 11; i++) ledger.hold(estimate)
    expect(calm.isFull(ledger)).toBe(true)
  })

  test('a busy engine gets no more than a step, however long the promise', () => {
    const promise = { ttftUs: 10_000_000, interTokenUs: 25_000 }
    const busy = new ReportedLimit({ model: MODEL, promise, options: { calmUnreadRatio: 0.1 } })
    const ledger = loadOf(100)
    for (let i = 0; i < 2; i++) ledger.hold(makeEstimate(1_500, 200))
    expect(busy.isFull(ledger)).toBe(true)
  })

  test('a ledger counts the prompts that were read, whoever has gone since', () => {
    const ledger = new Ledger()
    const estimate = makeEstimate(1_500, 200)
    ledger.hold(estimate)
    expect([ledger.prefillTokens, ledger.readTokens]).toEqual([1_500, 0])
    ledger.begin(estimate)
    ledger.drop(estimate, 0)
    expect([ledger.prefillTokens, ledger.readTokens]).toEqual([0, 1_500])
    ledger.assertInvariants()
  })

  test('prompts beyond what a step takes would queue inside the engine, where the time per token does not show it', () => {
    const capped: StepModel = {
      tokensPerStepMax: 2_048,
      meanTokenUs: (sequences, context, prefill) => MODEL.meanTokenUs(sequences, context, Math.min(2_048, prefill)),
    }
    // 66.7 prompt tokens a step each, and the token that it decodes.
    expect(
      roomFor(new ReportedLimit({ model: capped, promise: { ttftUs: 1_000_000, interTokenUs: 50_000 } }), 4_000, 60),
    ).toBe(30)
  })

  test('what fits changes when an answer comes back, not when the model learns: who waits is asked again then (L6)', () => {
    let factor = 2
    const timesNow = (times: number): StepModel => ({
      meanTokenUs: (...load) => times * MODEL.meanTokenUs(...load),
      frozen: () => timesNow(factor),
    })
    const learned = new ReportedLimit({ model: timesNow(1), promise: { ttftUs: 1_000_000, interTokenUs: 25_000 } })
    const before = roomFor(learned, 1_000, 200)
    factor = 1
    expect(roomFor(learned, 1_000, 200)).toBe(before)
    learned.observe(1_000_000, good(1), loadOf(2))
    expect(roomFor(learned, 1_000, 200)).toBeGreaterThan(before)
  })

  test('one late answer does not carry it away, and a short one less than a long one', () => {
    const afterOne = (tokenCount: number): number => {
      const learner = limit()
      const load = loadOf(64)
      const meanTokenUs = 4 * MODEL.meanTokenUs(64, load.contextTokens, 64)
      learner.observe(1_000_000, { ...good(1), meanTokenUs, tokenCount }, load)
      return roomFor(learner, 1_000, 200)
    }
    const untold = roomFor(limit(), 1_000, 200)
    expect(afterOne(200)).toBeGreaterThan(0.6 * untold)
    expect(afterOne(200)).toBeLessThan(afterOne(16))
    expect(afterOne(16)).toBeLessThan(untold)
  })

  test('an engine slower than its profile is given less, and more again when it recovers', () => {
    const learner = limit()
    for (let i = 0; i < 200; i++) {
      const load = loadOf(64)
      const predictedUs = MODEL.meanTokenUs(64, load.contextTokens, 64)
      learner.observe(i * 100_000, { ...good(1), meanTokenUs: 2 * predictedUs }, load)
    }
    const slow = roomFor(learner, 1_000, 200)
    expect(slow).toBeLessThan(60)
    for (let i = 0; i < 3_000; i++) {
      const load = loadOf(64)
      learner.observe(
        2e7 + i * 100_000,
        { ...good(1), meanTokenUs: MODEL.meanTokenUs(64, load.contextTokens, 64) },
        load,
      )
    }
    expect(roomFor(learner, 1_000, 200)).toBeGreaterThan(slow + 40)
  })
})

describe('ledger', () => {
  test('after any holds, growth and drops it is what is left', () => {
    const work = fc.record({
      prompt: fc.nat(5_000),
      output: fc.nat(2_000),
      grown: fc.nat(100),
      isDropped: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(work), (works) => {
        const ledger = new Ledger()
        const kept = new Ledger()
        for (const { prompt, output, grown } of works) {
          const estimate = makeEstimate(prompt, output)
          ledger.hold(estimate)
          ledger.grow(estimate, 0, grown)
        }
        for (const { prompt, output, grown, isDropped } of works) {
          const estimate = makeEstimate(prompt, output)
          if (isDropped) {
            ledger.begin(estimate)
            ledger.drop(estimate, grown)
          } else {
            kept.hold(estimate)
            kept.grow(estimate, 0, grown)
          }
        }
        ledger.assertInvariants()
        const fields = [
          'sequences',
          'kvTokens',
          'contextTokens',
          'prefillMilliPerToken',
          'prefillTokens',
          'engineUs',
        ] as const
        for (const field of fields) expect(ledger[field]).toBe(kept[field])
      }),
    )
  })

  test('what is reported beyond our own is foreign until it lapses', () => {
    const ledger = loadOf(10, 1_900, 100)
    ledger.report(0, { sequences: 12, kvTokens: 23_500 })
    expect([ledger.sequences, ledger.kvTokens, ledger.held]).toEqual([12, 23_500, 10])
    expect(ledger.lapse(1_999_999)).toBe(false)
    expect(ledger.lapse(2_000_000)).toBe(true)
    expect([ledger.sequences, ledger.kvTokens]).toEqual([10, 20_000])
    ledger.report(3_000_000, { sequences: 3, kvTokens: 100 })
    expect([ledger.sequences, ledger.kvTokens]).toEqual([10, 20_000])
  })

  test('a gauge that a report lacks is unknown, and not zero: what was told before counts until it lapses', () => {
    const ledger = loadOf(10, 1_900, 100)
    ledger.report(0, { sequences: 12, kvTokens: 23_500 })
    ledger.report(1_000_000, { sequences: 13 })
    expect([ledger.sequences, ledger.kvTokens]).toEqual([13, 23_500])
    expect(ledger.foreignUntil()).toBe(2_000_000)
    expect(ledger.lapse(2_000_000)).toBe(true)
    expect([ledger.sequences, ledger.kvTokens, ledger.foreignUntil()]).toEqual([13, 20_000, 3_000_000])
    ledger.report(2_500_000, { kvTokens: 21_000 })
    expect(ledger.lapse(3_000_000)).toBe(true)
    expect([ledger.sequences, ledger.kvTokens, ledger.foreignUntil()]).toEqual([10, 21_000, 4_500_000])
  })
})
