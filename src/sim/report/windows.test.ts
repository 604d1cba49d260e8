import { expect, it } from 'vitest'
import { settled } from '../../../test/support/entries.ts'
import { US_PER_S } from '../../base/clock.ts'
import { WINDOWS_MAX, Windows } from './windows.ts'

const SLO = { name: 'steady', ttftUs: 1_000_000, interTokenUs: 50_000, totalUs: 60_000_000 }

it('counts by window', () => {
  const windows = new Windows(5 * US_PER_S)
  for (const atS of [0, 1, 6]) windows.arrived(atS * US_PER_S)
  windows.engines(0, { utilisation: 0.5, kv: 0.25 })
  expect(windows.view()).toMatchObject([
    { atS: 0, arrivals: 2, utilisation: 0.5, kv: 0.25 },
    { atS: 5, arrivals: 1, utilisation: 0 },
  ])
})

it('has no more windows however long the run is, and loses nobody', () => {
  const windows = new Windows(US_PER_S)
  const seconds = 5 * WINDOWS_MAX
  for (let s = 0; s < seconds; s++) {
    windows.arrived(s * US_PER_S)
    windows.engines(s * US_PER_S, { utilisation: s % 2, kv: 0.5 })
    const arrivedAt = s * US_PER_S
    windows.settled(settled({ arrivedAt, admittedAt: arrivedAt, firstTokenAt: arrivedAt + 200_000 }), SLO)
  }
  const view = windows.view()
  expect(windows.windowUs).toBe(8 * US_PER_S)
  expect(view.length).toBeLessThanOrEqual(WINDOWS_MAX)
  expect(view.reduce((sum, { arrivals }) => sum + arrivals, 0)).toBe(seconds)
  expect(view.reduce((sum, { completed }) => sum + completed, 0)).toBe(seconds)
  expect(view[3]).toMatchObject({ atS: 24, arrivals: 8, admitted: 8, kv: 0.5, utilisation: 0.5 })
  expect(view[3]!.ttftP95).toBeCloseTo(200, -1)
  expect(view[3]!.rungs).toEqual({ full: 8 })
})
