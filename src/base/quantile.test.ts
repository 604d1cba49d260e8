import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { QuantileSketch } from './quantile.ts'

function sketchOf(samples: readonly number[], memorySamples = 100_000): QuantileSketch {
  const sketch = new QuantileSketch({ valueMax: 2 ** 31 - 1, memorySamples })
  for (const sample of samples) sketch.observe(sample)
  return sketch
}

describe('quantile sketch', () => {
  it('knows nothing before the first sample', () => {
    expect(sketchOf([]).quantile(0.5)).toBeUndefined()
    expect(sketchOf([5]).quantileAbove(5, 0.5)).toBeUndefined()
  })

  it('answers within 1/16 of the true sample at that rank', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.nat(20), fc.nat(5_000), fc.nat(2 ** 31 - 1)), { minLength: 1, maxLength: 400 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (samples, ratio) => {
          const sorted = samples.toSorted((a, b) => a - b)
          const exact = sorted[Math.max(0, Math.ceil(ratio * samples.length - 1e-9) - 1)] as number
          const told = sketchOf(samples).quantile(ratio) as number
          expect(Math.abs(told - exact)).toBeLessThanOrEqual(exact / 16 + 1e-9)
        },
      ),
    )
  })

  it('forgets: what changed a memory ago is what it says', () => {
    const sketch = sketchOf([], 100)
    for (let i = 0; i < 10_000; i++) sketch.observe(10)
    for (let i = 0; i < 400; i++) sketch.observe(1_000)
    expect(sketch.quantile(0.5)).toBeGreaterThan(900)
    expect(sketch.sampleCount).toBeLessThanOrEqual(200)
  })

  it('keeps a thin tail through halvings', () => {
    const sketch = sketchOf([], 64)
    for (let i = 0; i < 5_000; i++) sketch.observe(i % 20 === 0 ? 4_000 : 100)
    expect(sketch.quantile(0.98)).toBeGreaterThan(3_700)
    expect(sketch.quantile(0.9)).toBeLessThan(110)
  })

  it('guesses beyond a cut from those that went beyond it', () => {
    const sketch = sketchOf([10, 10, 10, 500, 500, 2_000])
    expect(sketch.quantileAbove(100, 0.5)).toBeGreaterThan(450)
    expect(sketch.quantileAbove(100, 0.5)).toBeLessThan(540)
  })

  it('is as new after it was cleared', () => {
    const sketch = sketchOf([10, 500, 2_000])
    sketch.clear()
    expect(sketch.quantile(0.5)).toBeUndefined()
    expect(sketch.mean).toBeUndefined()
    sketch.observe(7)
    expect([sketch.quantile(0.5), sketch.mean, sketch.sampleCount]).toEqual([7, 7, 1])
  })
})
