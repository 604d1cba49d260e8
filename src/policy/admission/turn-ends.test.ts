import { expect, it } from 'vitest'
import { TURN_ENDS_DEFAULTS, TurnEnds } from './turn-ends.ts'

const SECOND = 1_000_000
const NOTHING = { running: 0, lastsUs: 1 }

function seen(perS: number, forS: number): TurnEnds {
  const ends = new TurnEnds()
  for (let i = 1; i <= perS * forS; i++) ends.observe((i * SECOND) / perS)
  return ends
}

it('says how many turns end', () => {
  const perS = seen(30, 30).perUs(30 * SECOND, NOTHING) * SECOND
  expect(perS).toBeGreaterThan(29)
  expect(perS).toBeLessThan(31)
})

it('hears of a stretch of long answers within a few seconds', () => {
  const ends = seen(40, 30)
  for (let i = 1; i <= 3 * 20; i++) ends.observe((30 + i / 20) * SECOND)
  expect(ends.perUs(33 * SECOND, NOTHING) * SECOND).toBeLessThan(28)
})

it('halves in a pause as long as its memory', () => {
  const ends = seen(30, 30)
  const before = ends.perUs(30 * SECOND, NOTHING)
  const after = ends.perUs(30 * SECOND + TURN_ENDS_DEFAULTS.memoryUs, NOTHING)
  expect(after).toBeCloseTo(before / 2, 12)
})

it('takes no silence before a burst for an engine that stands still', () => {
  const running = { running: 256, lastsUs: 8 * SECOND }
  expect(new TurnEnds().perUs(0, running) * SECOND).toBeCloseTo(TURN_ENDS_DEFAULTS.predictedRatio * 32, 9)
  // What was seen counts where it is more.
  expect(seen(30, 30).perUs(30 * SECOND, running) * SECOND).toBeGreaterThan(29)
})
