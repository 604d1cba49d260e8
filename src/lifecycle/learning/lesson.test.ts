import { describe, expect, it } from 'vitest'
import { makeEstimate } from '../../../test/support/demand.ts'
import { Ledger } from '../../policy/limits/ledger.ts'
import type { TwinPrior } from '../../policy/twin/twin-prior.ts'
import { Twins } from '../../policy/twin/twins.ts'
import { Lesson } from './lesson.ts'

const PRIOR: TwinPrior = {
  name: 'known',
  decode: [6_000, 100, 0.02, 9],
  read: [5_000, 20, 20, 0.001],
  tokenBudget: 2_048,
}

/** An attempt at an idle replica, from its turn on. */
function begin() {
  const twins = new Twins({ priors: [PRIOR], prior: PRIOR, sequencesMax: 256 })
  const ledger = new Ledger()
  const estimate = makeEstimate(1_000, 100)
  ledger.hold(estimate)
  const lesson = new Lesson(0, { twins, replicaId: 'r', estimate, load: ledger })
  const firstToken = (now: number, tokens = 1): void => {
    ledger.begin(estimate)
    lesson.begun(now, tokens, undefined)
  }
  const { twin } = twins.of('r')
  return { twins, twin, ledger, estimate, lesson, firstToken }
}

describe('a lesson', () => {
  it('is a row of reading at the first token, and rows of decoding while the answer grows', () => {
    const { twin, lesson, firstToken } = begin()
    firstToken(30_000)
    expect(twin.view()).toMatchObject({ rows: 0 })
    expect(twin.view().firstTokenError).toBeGreaterThan(0)
    // Long enough and with tokens enough: both.
    lesson.grown(30_000 + 299_999, 50)
    lesson.grown(30_000 + 900_000, 24)
    expect(twin.rows).toBe(0)
    lesson.grown(30_000 + 900_000, 25)
    // More of the same arrival may come.
    expect(twin.rows).toBe(0)
    lesson.grown(30_000 + 1_100_000, 60)
    expect(twin.rows).toBe(1)
    lesson.grown(30_000 + 1_120_000, 61)
    expect(twin.rows).toBe(1)
  })

  it('counts what came with the first frame as no time', () => {
    const { twin, lesson, firstToken } = begin()
    firstToken(30_000, 9)
    lesson.over(30_000 + 32 * 7_000, 30_000 + 32 * 7_000, 9 + 32)
    expect(twin.rows).toBe(1)
    // The one row is off by what 7,000 differs from one sequence of 1,050 tokens alone.
    expect(twin.view().tokenError).toBeCloseTo(7_000 / 6_121 - 1, 3)
  })

  it.each([1, 2, 3, 5, 8, 24])('has the same rows when %s frames are read together', (together) => {
    const { twin, lesson, firstToken } = begin()
    const tokenUs = 9_000
    let now = 30_000
    firstToken(now)
    // The frames of one read, 30 µs apart: the time it takes to handle one.
    for (let tokens = 1 + together; tokens <= 961; tokens += together) {
      now += together * tokenUs
      for (let i = together - 1; i >= 0; i--) lesson.grown(now - 30 * i, tokens - i)
    }
    lesson.over(now, now, 961)
    expect(twin.rows).toBeGreaterThanOrEqual(20)
    expect(twin.meanTokenUs(1, 1_050, 0) / tokenUs).toBeGreaterThan(0.97)
    expect(twin.meanTokenUs(1, 1_050, 0) / tokenUs).toBeLessThan(1.03)
    expect(twin.view().tokenError).toBeLessThan(0.15)
  })

  it('makes no row of a last token that was read together with the end of a stretch', () => {
    const { twin, lesson, firstToken } = begin()
    firstToken(30_000)
    lesson.grown(30_000 + 60 * 6_121, 61)
    lesson.over(30_000 + 60 * 6_121 + 30, 30_000 + 60 * 6_121 + 30, 62)
    expect(twin.rows).toBe(1)
    expect(twin.view().tokenError).toBeLessThan(0.02)
  })

  it('is over with its last token, however short the last stretch was', () => {
    const { twin, twins, ledger, estimate, lesson, firstToken } = begin()
    firstToken(30_000)
    ledger.drop(estimate, 0)
    lesson.over(150_000, 100_000, 11)
    expect(twin.rows).toBe(1)
    expect(twins.tokenUs(0)).toBe(twin.tokenUs(0))
  })

  it('says nothing of an attempt that never began', () => {
    const { twin, lesson } = begin()
    lesson.grown(500_000, 60)
    lesson.over(900_000, undefined, 0)
    expect(twin.view()).toMatchObject({ rows: 0, firstTokenError: undefined, decode: PRIOR.decode, read: PRIOR.read })
  })

  it('takes over a corrected count', () => {
    const { twin, lesson, firstToken } = begin()
    firstToken(30_000, 10)
    // Ten frames were twenty tokens, and so were all others.
    lesson.trueUp(2)
    lesson.over(30_000 + 40 * 6_121, 30_000 + 40 * 6_121, 60)
    expect(twin.view().tokenError).toBeLessThan(0.001)
  })
})

describe('an engine that reports cached tokens', () => {
  it('its reading is learned at the end, with what was cached', () => {
    const { twins, twin, lesson, firstToken } = begin()
    twins.cache.observe(0, { expectedTokens: 0, reportedTokens: 100 })
    const before = twin.view()
    firstToken(30_000, 1)
    expect(twin.view().read).toEqual(before.read)
    lesson.over(90_000, 80_000, 5, { promptTokens: 1_000, cachedTokens: 900 })
    expect(twin.view().read).not.toEqual(before.read)
  })
})
