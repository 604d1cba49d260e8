import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FadingFit } from './fading-fit.ts'
import { Rng } from './rng.ts'

const OPTIONS = { priorRows: 2, clipRatio: 0.3 }
const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, each, i) => sum + each * b[i]!, 0)

/** Rows of a step: one base, some sequences, some context; the times are off by up to `noise` either way. */
function* rowsOf(truth: readonly number[], seed: number, count: number, noise = 0): Generator<[number[], number]> {
  const rng = Rng.stream(seed, 'rows')
  for (let i = 0; i < count; i++) {
    const sequences = 1 + rng.below(64)
    const x = [1, sequences, sequences * (200 + rng.below(2_000))]
    yield [x, dot(truth, x) * (1 + noise * (2 * rng.next() - 1))]
  }
}

const TRUTH = [6_000, 100, 0.05]
const PRIOR = [9_000, 60, 0.02]
const PROBES = [
  [1, 1, 500],
  [1, 20, 20_000],
  [1, 64, 100_000],
]

function errorAt(fit: FadingFit, truth: readonly number[]): number {
  return Math.max(...PROBES.map((x) => Math.abs(fit.predict(x) / dot(truth, x) - 1)))
}

describe('a fit that fades', () => {
  it('follows the example of its description', () => {
    const fit = new FadingFit([6, 0.1], OPTIONS)
    for (let i = 0; i < 100; i++) {
      fit.observe([1, 20], 8)
      fit.observe([1, 60], 12)
    }
    expect(fit.coefficients()[0]).toBeCloseTo(6, 9)
    expect(fit.coefficients()[1]).toBeCloseTo(0.1, 9)
    const other = new FadingFit([6, 0.1], OPTIONS)
    for (let i = 0; i < 1_000; i++) {
      other.observe([1, 20], 16)
      other.observe([1, 60], 24)
      if (i === 100) expect(Math.abs(other.predict([1, 60]) / 24 - 1)).toBeLessThan(0.05)
    }
    expect(Math.abs(other.coefficients()[0]! / 12 - 1)).toBeLessThan(0.05)
    expect(Math.abs(other.coefficients()[1]! / 0.2 - 1)).toBeLessThan(0.05)
  })

  it('finds the coefficients behind noisy rows', () => {
    for (const seed of [1, 2, 3]) {
      const fit = new FadingFit(PRIOR, OPTIONS)
      for (const [x, y] of rowsOf(TRUTH, seed, 4_000, 0.2)) fit.observe(x, y)
      expect(errorAt(fit, TRUTH)).toBeLessThan(0.04)
      const errors = fit.coefficients().map((coefficient, i) => Math.abs(coefficient / TRUTH[i]! - 1))
      // Context grows with sequences: what the one lacks the other has, and their sum is known long before either.
      expect(Math.max(errors[0]!, errors[1]!)).toBeLessThan(0.1)
      expect(errors[2]).toBeLessThan(0.25)
    }
  })

  it('keeps its prior where the rows say nothing', () => {
    const fit = new FadingFit(PRIOR, OPTIONS)
    expect(fit.coefficients()[0]).toBeCloseTo(PRIOR[0]!, 6)
    for (let i = 0; i < 500; i++) fit.observe([1, 0, 0], 4_000)
    expect(Math.abs(fit.coefficients()[0]! / 4_000 - 1)).toBeLessThan(0.02)
    expect(fit.coefficients()[1]).toBeCloseTo(PRIOR[1]!, 9)
    expect(fit.coefficients()[2]).toBeCloseTo(PRIOR[2]!, 9)
  })

  it('forgets what has faded', () => {
    const slow = TRUTH.map((each) => 2 * each)
    const fit = new FadingFit(PRIOR, OPTIONS)
    for (const [x, y] of rowsOf(TRUTH, 1, 1_000)) fit.observe(x, y)
    const stubborn = new FadingFit(PRIOR, OPTIONS)
    for (const [x, y] of rowsOf(TRUTH, 1, 1_000)) stubborn.observe(x, y)
    fit.fade(0.01)
    for (const [x, y] of rowsOf(slow, 2, 1_000)) {
      fit.observe(x, y)
      stubborn.observe(x, y)
    }
    expect(errorAt(fit, slow)).toBeLessThan(0.2)
    expect(errorAt(stubborn, slow)).toBeGreaterThan(0.4)
  })

  it('falls back to its prior when everything has faded', () => {
    const fit = new FadingFit(PRIOR, OPTIONS)
    for (const [x, y] of rowsOf(TRUTH, 1, 200)) fit.observe(x, y)
    fit.fade(0)
    expect(fit.weight).toBe(0)
    fit.coefficients().forEach((coefficient, i) => {
      expect(coefficient).toBeCloseTo(PRIOR[i]!, 9)
    })
  })

  it('is moved by less than 5 % by one row in ten that is ten times as long, or as short', () => {
    for (const factor of [10, 0.1]) {
      const clean = new FadingFit(PRIOR, OPTIONS)
      const fit = new FadingFit(PRIOR, OPTIONS)
      let i = 0
      for (const [x, y] of rowsOf(TRUTH, 4, 1_000, 0.1)) {
        clean.observe(x, y)
        fit.observe(x, ++i % 10 === 0 ? y * factor : y)
      }
      const moved = PROBES.map((x) => Math.abs(fit.predict(x) / clean.predict(x) - 1))
      expect(Math.max(...moved)).toBeLessThan(0.05)
    }
  })

  it('says how far a row was off, and leaves out what is no time', () => {
    const fit = new FadingFit([100], OPTIONS)
    expect(fit.observe([1], 200)).toBe(2)
    const { weight } = fit
    for (const y of [0, -5, Number.NaN, Number.POSITIVE_INFINITY]) expect(fit.observe([1], y)).toBe(1)
    expect(fit.weight).toBe(weight)
  })

  it('leaves out a coefficient that would be negative', () => {
    const fit = new FadingFit([50, 10], OPTIONS)
    for (let i = 0; i < 200; i++) for (const n of [1, 3, 5]) fit.observe([1, n], 60 - 10 * n)
    expect(fit.coefficients()[1]).toBe(0)
    expect(fit.coefficients()[0]).toBeGreaterThan(0)
  })

  it('takes no prior of zero, which would be no scale', () => {
    expect(() => new FadingFit([1, 0], OPTIONS)).toThrow('above zero')
    expect(() => new FadingFit([1, 1], OPTIONS).setPrior([1, Number.NaN])).toThrow('above zero')
    expect(() => new FadingFit([1, 1], OPTIONS).setPrior([1])).toThrow('each coefficient')
  })

  it('takes no row whose terms have no end: its sums would be no numbers, for good', () => {
    const fit = new FadingFit([6, 2], OPTIONS)
    expect(fit.observe([1, Number.POSITIVE_INFINITY], 8)).toBe(1)
    expect([fit.weight, ...fit.coefficients()]).toEqual([0, 6, 2])
    fit.observe([1, 1e300], 8)
    expect(fit.coefficients().every(Number.isFinite)).toBe(true)
  })

  it('is never negative, never without bound, and never more than it has seen', () => {
    const positive = fc.double({ min: 0.01, max: 1e6, noNaN: true })
    const row = fc.record({
      x: fc.tuple(
        fc.constant(1),
        fc.double({ min: 0, max: 300, noNaN: true }),
        fc.double({ min: 0, max: 1e6, noNaN: true }),
      ),
      y: fc.double({ min: 1, max: 1e8, noNaN: true }),
      keep: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    fc.assert(
      fc.property(fc.tuple(positive, positive, positive), fc.array(row, { maxLength: 40 }), (prior, rows) => {
        const fit = new FadingFit(prior, OPTIONS)
        for (const { x, y, keep } of rows) {
          fit.observe(x, y)
          fit.fade(keep)
          for (const coefficient of fit.coefficients()) {
            expect(Number.isFinite(coefficient)).toBe(true)
            expect(coefficient).toBeGreaterThanOrEqual(0)
          }
          expect(fit.weight).toBeLessThanOrEqual(rows.length)
        }
      }),
    )
  })
})
