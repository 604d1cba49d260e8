import { describe, expect, it } from 'vitest'
import type { Load } from '../limits/ledger.ts'
import { ObservedSpeed } from './observed-speed.ts'
import { timesUnderLoad } from './times-under-load.ts'

const SECOND = 1_000_000
const ALONE = { prefillUs: (uncached: number) => 40 * uncached, tokenUs: (context: number) => 6_000 + context / 100 }
const STEPS = {
  tokenBudget: 2_048,
  meanTokenUs: (sequences: number, context: number, prompt: number) =>
    6_000 + 100 * sequences + context / 100 + 40 * prompt,
}
const IDLE: Load = {
  sequences: 0,
  kvTokens: 0,
  contextTokens: 0,
  prefillMilliPerToken: 0,
  prefillTokens: 0,
  readTokens: 0,
  engineUs: 0,
}
const SWAMPED: Load = { ...IDLE, sequences: 120, contextTokens: 140_000, prefillTokens: 40_000 }
const expectedUnder = (load: Load, promptTokens: number): number =>
  timesUnderLoad(ALONE, STEPS, load, { promptTokens, cachedTokens: 0, plannedTokens: undefined }).ttftUs

const prompt = (uncachedTokens: number, tookUs: number, expectedUs?: number) => ({
  uncachedTokens,
  cachedTokens: 0,
  tookUs,
  expectedUs,
})

describe('observed speed', () => {
  it('is the model before anything was seen', () => {
    const speed = new ObservedSpeed(ALONE)
    expect([speed.prefillUs(1_000, 0), speed.tokenUs(1_000)]).toEqual([40_000, 6_010])
  })

  it('is not carried away where a model has just learned that it was off by a factor', () => {
    const taught = (steps: typeof STEPS | undefined) => {
      const speed = new ObservedSpeed(ALONE, steps)
      // Expected by the model as it was: a tenth of what came.
      for (let i = 0; i < 16; i++) {
        const tokens = 100 + 100 * i
        speed.observePrefill(i, prompt(tokens, 400 * tokens, 40 * tokens))
      }
      return speed.prefillUs(4_000, 0)
    }
    expect(taught(STEPS)).toBeLessThan(5 * ALONE.prefillUs(4_000))
    expect(taught(undefined)).toBeGreaterThan(7 * ALONE.prefillUs(4_000))
  })

  it('follows the example of its description', () => {
    const speed = new ObservedSpeed(ALONE)
    // 10 ms and 80 ms alone took 35 and 120: a = 23 ms, b = 1.2. The prior's four samples are outweighed.
    for (let i = 0; i < 2_000; i++) {
      speed.observePrefill(i, prompt(250, 35_000))
      speed.observePrefill(i, prompt(2_000, 120_000))
    }
    expect(Math.abs(speed.prefillUs(1_000, 0) / 71_400 - 1)).toBeLessThan(0.05)
  })

  it('learns how far apart tokens come', () => {
    const speed = new ObservedSpeed(ALONE)
    for (let i = 0; i < 1_000; i++) speed.observeTokens(i, { contextTokens: 1_000, gapUs: 12_020 })
    expect(Math.abs(speed.tokenUs(1_000) / 12_020 - 1)).toBeLessThan(0.05)
  })

  it('asks for the load of the moment', () => {
    const speed = new ObservedSpeed(ALONE, STEPS)
    expect(speed.under(IDLE).prefillUs(1_000, 0)).toBe(40_000)
    expect(speed.under(SWAMPED).prefillUs(1_000, 0)).toBe(Math.round(expectedUnder(SWAMPED, 1_000)))
    expect(speed.under(SWAMPED).prefillUs(1_000, 0)).toBeGreaterThan(40 * 40_000)
    // Without step times there is nothing that a load could say.
    const unknown = new ObservedSpeed(ALONE)
    expect(unknown.under(SWAMPED)).toBe(unknown)
  })

  it('corrects what the load makes likely', () => {
    const speed = new ObservedSpeed(ALONE, STEPS)
    for (let i = 0; i < 500; i++) {
      const promptTokens = 200 + 7 * (i % 400)
      const expectedUs = expectedUnder(IDLE, promptTokens)
      speed.observePrefill(i * 20_000, prompt(promptTokens, 1.5 * expectedUs, expectedUs))
    }
    expect(Math.abs(speed.under(IDLE).prefillUs(2_000, 0) / 120_000 - 1)).toBeLessThan(0.1)
  })

  it('is not locked up by an overshoot: a few samples and seconds later an idle engine is thought idle', () => {
    for (const tookUs of [2 * SECOND, 4 * SECOND]) {
      const speed = new ObservedSpeed(ALONE, STEPS)
      const expectedUs = expectedUnder(SWAMPED, 1_000)
      // 64 first tokens at a swamped engine, later than even its load explains.
      for (let i = 0; i < 64; i++) speed.observePrefill(i * 20_000, prompt(1_000, tookUs, expectedUs))
      expect(speed.under(SWAMPED).prefillUs(1_000, 0)).toBeGreaterThan(0.7 * tookUs)
      for (let i = 1; i <= 3; i++) {
        speed.observePrefill(1.3 * SECOND + i * 1.6 * SECOND, prompt(1_000, 42_000, expectedUnder(IDLE, 1_000)))
      }
      const aloneUs = ALONE.prefillUs(1_000)
      expect(speed.under(IDLE).prefillUs(1_000, 0)).toBeLessThan(2 * aloneUs)
      expect(speed.under(IDLE).prefillUs(1_000, 0)).toBeGreaterThan(aloneUs / 2)
    }
  })

  it('is not thought swamped seconds after a stall, where step times are known', () => {
    const speed = new ObservedSpeed(ALONE, STEPS)
    const expectedUs = expectedUnder(IDLE, 300)
    for (let i = 0; i < 24; i++) speed.observePrefill(i, prompt(300, 20 * SECOND, expectedUs))
    expect(speed.under(IDLE).prefillUs(300, 0)).toBeGreaterThan(10 * expectedUs)
    // Well again: one attempt at a time, half a second each.
    for (let i = 1; i <= 10; i++) speed.observePrefill(i * 0.5 * SECOND, prompt(300, expectedUs, expectedUs))
    expect(speed.under(IDLE).prefillUs(300, 0)).toBeLessThan(0.2 * SECOND)
  })

  it('fades with time: what was before a long pause is outweighed by one sample', () => {
    const speed = new ObservedSpeed(ALONE)
    const impatient = new ObservedSpeed(ALONE)
    for (let i = 0; i < 64; i++) {
      speed.observePrefill(i, prompt(1_000, 2 * SECOND))
      impatient.observePrefill(i, prompt(1_000, 2 * SECOND))
    }
    speed.observePrefill(600 * SECOND, prompt(1_000, 40_000))
    impatient.observePrefill(64, prompt(1_000, 40_000))
    expect(speed.prefillUs(1_000, 0)).toBeLessThan(2.5 * 40_000)
    expect(impatient.prefillUs(1_000, 0)).toBeGreaterThan(20 * 40_000)
  })

  it('never says less than half of what is expected', () => {
    const speed = new ObservedSpeed(ALONE)
    for (let i = 0; i < 500; i++) speed.observePrefill(i, prompt(100 + i, 1))
    expect(speed.prefillUs(5_000, 0)).toBeGreaterThanOrEqual(100_000)
  })
})
