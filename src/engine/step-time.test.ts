import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GpuProfile, RooflineCoefficients } from './gpu-profile.ts'
import { findGpuProfile, gpuProfileNames } from './gpu-profiles.ts'
import { type StepLoad, type StepPace, StepTime, stepUs, TICKS_PER_US } from './step-time.ts'
import { Timeline } from './timeline.ts'

const h200 = findGpuProfile('h200-llama-8b')?.coefficients as RooflineCoefficients

const decodeLoad = (decodeCount: number, contextSum: number, contextMax: number): StepLoad => ({
  decodeCount,
  decodeTokens: decodeCount,
  contextSum,
  contextMax,
  prefillTokens: 0,
  chunkPairs: 0,
  contextPairs: 0,
})

const decodeLoads = fc
  .record({
    decodeCount: fc.integer({ min: 1, max: 256 }),
    context: fc.nat(9_000),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ decodeCount, context, share }) =>
    decodeLoad(decodeCount, context + Math.floor(share * context * (decodeCount - 1)), context),
  )

const coefficients = fc
  .record({
    kvReadUsPerToken: fc.double({ min: 0, max: 0.2, noNaN: true }),
    contextUsPerToken: fc.double({ min: 0, max: 2, noNaN: true }),
    decodeFloorUs: fc.constantFrom(0, 5_000, 9_000),
  })
  .map((drawn): RooflineCoefficients => ({ ...h200, ...drawn }))

const paceOf = (c: RooflineCoefficients, load: StepLoad): StepPace => {
  const pace: StepPace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
  new StepTime(c, 4_096).paceOf(load, pace)
  return pace
}

describe('step time', () => {
  it('is the formula, to the rounding of the knee', () => {
    fc.assert(
      fc.property(coefficients, decodeLoads, (c, load) => {
        expect(Math.abs(paceOf(c, load).ticks / TICKS_PER_US - stepUs(c, load))).toBeLessThan(2)
      }),
    )
  })

  it('grows in equal steps while a set decodes, exactly, for as long as it says', () => {
    fc.assert(
      fc.property(coefficients, decodeLoads, fc.nat(3_000), (c, load, steps) => {
        const pace = paceOf(c, load)
        expect(pace.stepsMax).toBeGreaterThanOrEqual(1)
        const at = Math.min(steps, pace.stepsMax - 1)
        const later = decodeLoad(load.decodeCount, load.contextSum + at * load.decodeCount, load.contextMax + at)
        expect(paceOf(c, later).ticks).toBe(pace.ticks + at * pace.ticksGrowth)
      }),
    )
  })

  it('is what was measured: 64 sequences at 1,024 tokens in 7.5 ms, 2,048 prompt tokens in 52 ms', () => {
    expect(stepUs(h200, decodeLoad(64, 64 * 1_024, 1_024)) / 7_510).toBeCloseTo(1, 1)
    const prefill = { ...decodeLoad(0, 0, 0), prefillTokens: 2_048, chunkPairs: 2_048 ** 2 / 2 }
    expect(stepUs(h200, prefill) / 52_307).toBeCloseTo(1, 1)
  })

  it('has a floor under prefills, softly, and none under decodes', () => {
    const floored = { ...h200, prefillFloorUs: 20_000, prefillFloorSharpness: 4 }
    const prefill = (tokens: number): StepLoad => ({
      ...decodeLoad(0, 0, 0),
      prefillTokens: tokens,
      chunkPairs: tokens ** 2 / 2,
    })
    const over = (tokens: number): number => stepUs(floored, prefill(tokens)) / stepUs(h200, prefill(tokens))
    expect(stepUs(floored, prefill(16)) / 20_000).toBeCloseTo(1, 2)
    expect(over(2_048)).toBeLessThan(1.01)
    expect(over(700)).toBeGreaterThan(1.15)
    expect(paceOf(floored, prefill(16)).ticks).toBe(Math.round(stepUs(floored, prefill(16))) * TICKS_PER_US)
    expect(stepUs(floored, decodeLoad(1, 100, 100))).toBe(stepUs(h200, decodeLoad(1, 100, 100)))
    expect(stepUs({ ...h200, decodeFloorUs: 9_000 }, decodeLoad(1, 100, 100))).toBe(9_000)
  })

  it('follows the reference documents where asked: 16 sequences decode 2.8 times as fast as one', () => {
    const { coefficients: reference } = findGpuProfile('reference-a100') as GpuProfile
    expect(stepUs(reference, decodeLoad(1, 0, 0))).toBeCloseTo(1e6 / 128, 6)
    expect(stepUs(reference, decodeLoad(16, 0, 0))).toBeCloseTo((16 * 1e6) / (128 * 2.8), 6)
    const prefill = { ...decodeLoad(0, 0, 0), prefillTokens: 512 }
    expect(stepUs(reference, prefill)).toBeCloseTo(500_000, 6)
  })

  it('is longer for more work, in every profile', () => {
    for (const name of gpuProfileNames()) {
      const { coefficients: c } = findGpuProfile(name) as GpuProfile
      expect(stepUs(c, decodeLoad(8, 8_000, 1_000))).toBeLessThan(stepUs(c, decodeLoad(64, 64_000, 1_000)))
    }
  })
})

describe('a timeline', () => {
  it('leaps to where single steps lead, at instants of our century', () => {
    const paces = fc.record({ ticks: fc.integer({ min: 1, max: 2 ** 35 }), growth: fc.nat(2 ** 24) })
    fc.assert(
      fc.property(paces, fc.integer({ min: 1, max: 400 }), ({ ticks, growth }, steps) => {
        const leaping = new Timeline()
        const stepping = new Timeline()
        for (const timeline of [leaping, stepping]) {
          timeline.startAt(1_800_000_000_000_000)
          Object.assign(timeline.pace, { ticks, ticksGrowth: growth })
        }
        const endAt = leaping.endOf(steps)
        expect(leaping.stepsOverAt(endAt - 1, steps)).toBeLessThan(steps)
        leaping.pass(steps)
        for (let i = 0; i < steps; i++) stepping.pass(1)
        expect(leaping.boundaryAt).toBe(endAt)
        expect(stepping.boundaryAt).toBe(endAt)
        expect(stepping.busyUs).toBe(leaping.busyUs)
        expect(stepping.pace).toEqual(leaping.pace)
      }),
    )
  })

  it('knows how many steps are over at any instant', () => {
    const timeline = new Timeline()
    timeline.startAt(100)
    Object.assign(timeline.pace, { ticks: 10 * TICKS_PER_US, ticksGrowth: TICKS_PER_US })
    // Boundaries at 110, 121, 133, 146.
    expect([109, 110, 120, 121, 133, 145].map((at) => timeline.stepsOverAt(at, 4))).toEqual([0, 1, 1, 2, 3, 3])
    expect(timeline.isEndOf(2, 121)).toBe(true)
    expect(timeline.isEndOf(2, 122)).toBe(false)
  })
})
