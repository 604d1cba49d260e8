import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Histogram } from './histogram.ts'

const RATIOS = [0, 0.5, 0.9, 0.95, 0.99, 1]

/** What a sorted list of the samples says. */
function trueQuantile(samples: readonly number[], ratio: number): number | undefined {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.max(1, Math.ceil(ratio * sorted.length)) - 1]
}

const samplesOf = (maxLength: number) => fc.array(fc.integer({ min: 0, max: 1_000_000 }), { minLength: 1, maxLength })

describe('histogram', () => {
  it('is within a sixty-fourth of the sample at the rank, with few samples and with many', () => {
    fc.assert(
      fc.property(fc.oneof(samplesOf(12), samplesOf(200)), (samples) => {
        const histogram = new Histogram()
        for (const sample of samples) histogram.observe(sample)
        for (const ratio of RATIOS) {
          const exact = trueQuantile(samples, ratio) as number
          expect(Math.abs((histogram.quantile(ratio) as number) - exact)).toBeLessThanOrEqual(exact / 64 + 0.5)
        }
      }),
    )
  })

  it('says the same however its samples were brought together', () => {
    fc.assert(
      fc.property(samplesOf(60), samplesOf(60), (some, others) => {
        const whole = new Histogram()
        const [first, second] = [new Histogram(), new Histogram()]
        for (const sample of some) first.observe(sample)
        for (const sample of others) second.observe(sample)
        for (const sample of [...some, ...others]) whole.observe(sample)
        first.add(second)
        expect(first.count).toBe(whole.count)
        for (const ratio of RATIOS) expect(first.quantile(ratio)).toBe(whole.quantile(ratio))
      }),
    )
  })

  it('counts what never came, and several at once', () => {
    const histogram = new Histogram()
    expect(histogram.quantile(0.5)).toBeUndefined()
    histogram.observe(10, 3)
    histogram.observe(Number.POSITIVE_INFINITY)
    expect(histogram.count).toBe(4)
    expect(histogram.quantile(0.75)).toBe(10)
    expect(histogram.quantile(1)).toBe(Number.POSITIVE_INFINITY)
    expect(histogram.mean).toBe(10)
  })
})
