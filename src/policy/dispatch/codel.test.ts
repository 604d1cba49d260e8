import { expect, it } from 'vitest'
import { Codel } from './codel.ts'

const MS = 1_000

/** Instants, in milliseconds, at which somebody was dropped, when turns come every millisecond. */
function drops(forMs: number, waitMs: (atMs: number) => number): number[] {
  const codel = new Codel({ targetUs: 5 * MS, intervalUs: 100 * MS })
  const dropped: number[] = []
  for (let at = 0; at < forMs; at++) if (codel.shouldDrop(at * MS, waitMs(at) * MS)) dropped.push(at)
  return dropped
}

it('drops nobody while waits are short, or long for less than an interval', () => {
  expect(drops(1_000, () => 4)).toEqual([])
  expect(drops(1_000, (at) => (at % 100 < 90 ? 50 : 1))).toEqual([])
})

it('drops after an interval, then ever more often', () => {
  expect(drops(500, () => 50)).toEqual([100, 200, 271, 329, 379, 424, 464])
})

it('stops when somebody has waited less, and soon begins again near the rate that was needed', () => {
  const dropped = drops(1_000, (at) => (at === 600 ? 1 : 50))
  const after = dropped.filter((at) => at > 600)
  expect(after[0]).toBe(701)
  expect(after[1]! - after[0]!).toBeLessThan(40)
})
