import { describe, expect, it } from 'vitest'
import { ChangeWatch } from './change-watch.ts'

const OPTIONS = { factor: 1.3, rows: 24, rowFactorMax: 2 }

/** What a watch says of rows a tenth of a second apart. */
function watch(ratios: readonly number[]): (number | undefined)[] {
  const change = new ChangeWatch(OPTIONS)
  return ratios.map((ratio, i) => change.observe(i * 100_000, ratio, 1))
}
const rows = (count: number, ratioOf: (i: number) => number) => Array.from({ length: count }, (_, i) => ratioOf(i))

describe('a watch for changes', () => {
  it('follows the example of its description', () => {
    const said = watch(rows(24, (i) => [1.8, 1.9, 1.7][i % 3]!))
    expect(said.slice(0, 23).every((factor) => factor === undefined)).toBe(true)
    expect(said[23]).toBeCloseTo(1.8, 1)
  })

  it('knows faster from slower, and begins anew after it has spoken', () => {
    const said = watch(rows(48, () => 0.6))
    expect(said.filter((factor) => factor !== undefined)).toHaveLength(2)
    expect(said[23]).toBeCloseTo(0.6, 6)
    expect(said[47]).toBeCloseTo(0.6, 6)
  })

  it('says nothing of scatter, nor of one wild row in ten', () => {
    for (const ratioOf of [
      (i: number) => (i % 2 === 0 ? 1.6 : 1 / 1.6),
      (i: number) => (i % 10 === 0 ? 1e9 : 1),
      (i: number) => (i % 10 === 0 ? 0 : 1),
    ])
      expect(watch(rows(500, ratioOf)).every((factor) => factor === undefined)).toBe(true)
  })

  it('looks at as many rows as it needs, however seldom they come', () => {
    const seldom = new ChangeWatch(OPTIONS)
    // Three rows on end that are wild, a minute apart each, after many that are as expected.
    const said = rows(100, (i) => (i < 97 ? 1 : 2)).map((ratio, i) => seldom.observe(i * 60_000_000, ratio, 1))
    expect(said.every((factor) => factor === undefined)).toBe(true)
    const followed = rows(60, () => 2).map((ratio, i) => seldom.observe((100 + i) * 60_000_000, ratio, 1))
    expect(followed.some((factor) => factor !== undefined)).toBe(true)
  })

  it('says no more than one row may say', () => {
    expect(watch(rows(24, () => 50))[23]).toBeCloseTo(2, 6)
  })
})
