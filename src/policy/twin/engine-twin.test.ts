import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Load } from '../limits/ledger.ts'
import { EngineTwin, TWIN_DEFAULTS } from './engine-twin.ts'
import type { TwinPrior } from './twin-prior.ts'

const PRIOR: TwinPrior = {
  name: 'known',
  decode: [6_000, 100, 0.02, 9],
  read: [5_000, 20, 20, 0.001],
  tokenBudget: 2_048,
}
const makeTwin = () => new EngineTwin([PRIOR], PRIOR)
const load = (sequences: number, contextTokens = 1_100 * sequences, readTokens = 0): Load => ({
  sequences,
  contextTokens,
  readTokens,
  kvTokens: 0,
  prefillMilliPerToken: 0,
  prefillTokens: 0,
  engineUs: 0,
})

/** Stretches of 32 tokens beside a steady load, by a formula; returns when the last ended. */
function play(
  twin: EngineTwin,
  rows: number,
  { from = 0, sequences = 8, tokenUs }: { from?: number; sequences?: number; tokenUs: (sequences: number) => number },
): number {
  twin.note(from, load(sequences))
  const stretch = twin.openStretch(from, 0)
  let now = from
  for (let i = 1; i <= rows; i++) {
    now += 32 * tokenUs(sequences)
    twin.closeStretch(now, stretch, 32 * i)
  }
  return now
}

const first = (uncachedTokens: number, tookUs: number) => ({
  uncachedTokens,
  cachedTokens: 0,
  aheadTokens: 0,
  sequences: 0,
  contextTokens: 0,
  tookUs,
})

describe('a twin', () => {
  it('follows the example of its description, before it has seen anything', () => {
    const twin = makeTwin()
    expect(twin.meanTokenUs(64, 64 * 1_100, 320)).toBeCloseTo(6_000 + 6_400 + 1_408 + 2_880, 6)
    expect(twin.tokenUs(1_000)).toBe(6_120)
    expect(twin.prefillUs(512, 0)).toBe(Math.round(5_000 + 512 * 20 + (512 * 512) / 2_000))
    expect(twin.tokenBudget).toBe(2_048)
    expect(twin.view()).toMatchObject({ rows: 0, tokenError: undefined, firstTokenError: undefined, isTrusted: false })
  })

  it('frozen, says what it said, whatever it learns', () => {
    const twin = makeTwin()
    const frozen = twin.frozen()
    const before = twin.meanTokenUs(8, 8_800, 10_000)
    expect(frozen.meanTokenUs(8, 8_800, 10_000)).toBe(before)
    play(twin, 100, { tokenUs: () => 20_000 })
    expect(twin.meanTokenUs(8, 8_800, 10_000)).toBeGreaterThan(before)
    expect(frozen.meanTokenUs(8, 8_800, 10_000)).toBe(before)
  })

  it('learns how long reading takes from prompts that are not behind others', () => {
    const twin = makeTwin()
    const readUs = (tokens: number): number => 10_000 + 40 * tokens
    for (let i = 0; i < 400; i++) {
      const tokens = 100 + ((i * 37) % 900)
      // Every second one comes behind 4,000 tokens, of which hardly any is left to read.
      const aheadTokens = i % 2 === 0 ? 0 : 4_000
      twin.begun(i * 100_000, { ...first(tokens, readUs(tokens)), aheadTokens })
    }
    expect(twin.prefillUs(900, 0) / readUs(900)).toBeGreaterThan(0.85)
    expect(twin.prefillUs(900, 0) / readUs(900)).toBeLessThan(1.15)
  })

  it('counts no more prompt tokens than a step takes', () => {
    expect(makeTwin().meanTokenUs(1, 0, 10_000)).toBe(makeTwin().meanTokenUs(1, 0, 2_048))
  })

  it('takes the means of what was in flight over a stretch', () => {
    const twin = makeTwin()
    const stretch = twin.openStretch(0, 0)
    // Half of the time alone, half of it beside 39: as if it had been 20 all the time.
    for (let i = 0; i < 200; i++) {
      twin.note(i * 400_000, load(1, 0))
      twin.note(i * 400_000 + 200_000, load(39, 0))
      twin.closeStretch((i + 1) * 400_000, stretch, 32 * (i + 1))
    }
    expect(Math.abs(twin.meanTokenUs(20, 0, 0) / 12_500 - 1)).toBeLessThan(0.03)
    expect(twin.view().sequencesSeen).toBeCloseTo(20, 0)
  })

  it('prices prompts by what was read meanwhile', () => {
    const twin = makeTwin()
    const stretch = twin.openStretch(0, 0)
    let now = 0
    let read = 0
    for (let i = 1; i <= 600; i++) {
      const promptTokens = (i % 3) * 100
      now += 32 * (6_800 + 18 * promptTokens)
      read += 32 * promptTokens
      twin.note(now, load(8, 0, read))
      twin.closeStretch(now, stretch, 32 * i)
    }
    const perPrompt = (twin.meanTokenUs(8, 0, 200) - twin.meanTokenUs(8, 0, 0)) / 200
    // Twice the prior's 9.
    expect(Math.abs(perPrompt / 18 - 1)).toBeLessThan(0.2)
  })

  it('reads faster or slower than its prior, once first tokens said so', () => {
    const twin = makeTwin()
    for (let i = 1; i <= 300; i++) {
      const tokens = 100 + (i % 30) * 100
      twin.begun(i * 100_000, first(tokens, 10_000 + 40 * tokens))
    }
    for (const tokens of [200, 1_000, 3_000])
      expect(Math.abs(twin.prefillUs(tokens, 0) / (10_000 + 40 * tokens) - 1)).toBeLessThan(0.06)
    expect(twin.view().firstTokenError).toBeLessThan(0.1)
  })

  it('does not hear a first token that took no time, nor a stretch without tokens or time', () => {
    const twin = makeTwin()
    twin.begun(5, first(100, 0))
    const stretch = twin.openStretch(100, 3)
    twin.closeStretch(200, stretch, 3)
    twin.closeStretch(100, stretch, 9)
    expect(twin.view()).toMatchObject({ rows: 0, firstTokenError: undefined, read: PRIOR.read })
  })

  it('is trusted after some rows that it expected', () => {
    const twin = makeTwin()
    play(twin, TWIN_DEFAULTS.trustedRows - 1, { tokenUs: () => 7_000 })
    expect(twin.isTrusted).toBe(false)
    play(twin, 1, { from: 1e7, tokenUs: () => 7_000 })
    expect(twin.isTrusted).toBe(true)
  })

  it.each([1 / 1_000, 1 / 20, 20, 1_000])('is trusted although one row in ten is off by %s', (off) => {
    const twin = makeTwin()
    let now = 0
    for (let i = 1; i <= 66; i++)
      now = play(twin, 1, { from: now, tokenUs: () => (i % 10 === 0 ? off * 7_000 : 7_000) })
    expect(twin.isTrusted).toBe(true)
    expect(Math.abs(twin.meanTokenUs(8, 8_800, 0) / 7_000 - 1)).toBeLessThan(0.15)
  })

  it('is not trusted while it is wrong, in either direction or in both', () => {
    for (const tokenUs of [(i: number) => (i % 2 === 0 ? 3_000 : 20_000), (i: number) => 7_000 * 1.4 ** (i % 5)]) {
      const twin = makeTwin()
      let now = 0
      for (let i = 1; i <= 200; i++) now = play(twin, 1, { from: now, tokenUs: () => tokenUs(i) })
      expect(twin.isTrusted).toBe(false)
    }
  })

  it('says what it has seen, and keeps the prior’s proportions beyond, at the size of what it has seen', () => {
    const twin = makeTwin()
    const formula = (sequences: number): number => 1.2 * (6_000 + 100 * sequences + 0.02 * 1_100 * sequences)
    let now = 0
    for (let i = 0; i < 100; i++) now = play(twin, 4, { from: now, sequences: 1 + (i % 16), tokenUs: formula })
    expect([16, 20, 21, 64].map((sequences) => twin.isSeen(sequences))).toEqual([true, true, false, false])
    expect(Math.abs(twin.meanTokenUs(16, 16 * 1_100, 0) / formula(16) - 1)).toBeLessThan(0.02)
    expect(Math.abs(twin.meanTokenUs(128, 128 * 1_100, 0) / formula(128) - 1)).toBeLessThan(0.05)
  })

  it('follows an engine that has become three times as slow, and has seen nothing of that one', () => {
    const twin = makeTwin()
    let now = play(twin, 300, { sequences: 32, tokenUs: () => 10_000 })
    expect([twin.view().changes, twin.isSeen(32)]).toEqual([0, true])
    now = play(twin, 300, { from: now, sequences: 8, tokenUs: () => 30_000 })
    expect(twin.view().changes).toBeGreaterThan(0)
    expect(Math.abs(twin.meanTokenUs(8, 8_800, 0) / 30_000 - 1)).toBeLessThan(0.05)
    expect([twin.isSeen(8), twin.isSeen(32)]).toEqual([true, false])
  })

  it('takes one wild answer in ten for no other engine', () => {
    const twin = makeTwin()
    let now = 0
    for (let i = 0; i < 600; i++) now = play(twin, 1, { from: now, tokenUs: () => (i % 10 === 9 ? 100_000 : 7_000) })
    expect(twin.view().changes).toBe(0)
    expect(Math.abs(twin.meanTokenUs(8, 8_800, 0) / 7_000 - 1)).toBeLessThan(0.1)
  })

  it('survives a change with a coefficient that was left out', () => {
    const twin = makeTwin()
    // Faster with more sequences: no such coefficient is believed, so it is zero.
    let now = 0
    for (let i = 0; i < 400; i++)
      now = play(twin, 2, { from: now, sequences: 1 + 10 * (i % 4), tokenUs: (sequences) => 9_000 - 100 * sequences })
    expect(twin.view().decode.some((coefficient) => coefficient === 0)).toBe(true)
    expect(twin.offspring().tokenUs(0)).toBeGreaterThan(1_000)
    play(twin, 300, { from: now, tokenUs: () => 30_000 })
    expect(twin.view().changes).toBeGreaterThan(0)
    expect(Math.abs(twin.meanTokenUs(8, 8_800, 0) / 30_000 - 1)).toBeLessThan(0.1)
  })

  it('grows with every argument and stays finite, whatever it hears', () => {
    const row = fc.record({
      sequences: fc.integer({ min: 0, max: 300 }),
      tokens: fc.integer({ min: 0, max: 500 }),
      tookUs: fc.integer({ min: 0, max: 1e9 }),
      promptTokens: fc.integer({ min: 0, max: 100_000 }),
    })
    fc.assert(
      fc.property(fc.array(row, { maxLength: 120 }), (rows) => {
        const twin = makeTwin()
        let now = 0
        for (const { sequences, tokens, tookUs, promptTokens } of rows) {
          twin.note(now, load(sequences))
          twin.begun(now, first(promptTokens, tookUs))
          const stretch = twin.openStretch(now, 0)
          now += tookUs
          twin.closeStretch(now, stretch, tokens)
        }
        const at = twin.meanTokenUs(8, 8_000, 100)
        expect(Number.isFinite(at) && at > 0).toBe(true)
        expect(twin.meanTokenUs(9, 8_000, 100)).toBeGreaterThanOrEqual(at)
        expect(twin.meanTokenUs(8, 9_000, 100)).toBeGreaterThanOrEqual(at)
        expect(twin.meanTokenUs(8, 8_000, 101)).toBeGreaterThanOrEqual(at)
        expect(twin.prefillUs(2_000, 0)).toBeGreaterThanOrEqual(twin.prefillUs(1_000, 0))
        expect(twin.shareUs(1_000, 100)).toBeGreaterThanOrEqual(1)
      }),
    )
  })
})
