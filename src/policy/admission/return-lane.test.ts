import { expect, it } from 'vitest'
import { ReturnLane, ShowRatio } from './return-lane.ts'

const SECOND = 1_000_000
const options = { memory: 1 / 16, paceMemoryUs: 10 * SECOND }

/** Served 100 a second, for a minute. */
function steadyLane(): { lane: ReturnLane; now: number } {
  const lane = new ReturnLane(options, 100)
  let now = 0
  for (let i = 0; i < 60; i++, now += SECOND) lane.admitted(now, 100)
  return { lane, now }
}

it('slots of a lane lie as far apart as it is served', () => {
  const { lane, now } = steadyLane()
  lane.claimed({ dueAt: now + 5 * SECOND, cost: 200 })
  const gapUs = lane.nextDueAt(now) - now - 5 * SECOND
  expect(gapUs).toBeGreaterThan(1.8 * SECOND)
  expect(gapUs).toBeLessThan(2.4 * SECOND)
})

it('a lane that was silent has its slots farther apart, until it is served again', () => {
  const { lane, now } = steadyLane()
  const gapAt = (at: number): number => {
    lane.claimed({ dueAt: at, cost: 100 })
    return lane.nextDueAt(at) - at
  }
  const before = gapAt(now)
  const later = now + 30 * SECOND
  expect(gapAt(later)).toBeGreaterThan(3 * before)
  for (let i = 0; i < 20; i++) lane.admitted(later + i * SECOND, 100)
  expect(gapAt(later + 20 * SECOND)).toBeLessThan(1.3 * before)
})

it('nothing is known of the pace of a lane that never was served', () => {
  const lane = new ReturnLane(options, 100)
  lane.claimed({ dueAt: 5 * SECOND, cost: 200 })
  expect(lane.nextDueAt(0)).toBe(5 * SECOND)
})

it('who comes is soon believed, and so is who does not', () => {
  const comes = new ShowRatio(options.memory, 0.1)
  const stays = new ShowRatio(options.memory, 1)
  expect(comes.ratio).toBeCloseTo(0.1)
  for (let i = 0; i < 5; i++) {
    comes.observe(true)
    stays.observe(false)
  }
  expect(comes.ratio).toBeGreaterThan(0.5)
  expect(stays.ratio).toBeLessThan(0.5)
  for (let i = 0; i < 60; i++) stays.observe(false)
  expect(stays.ratio).toBeLessThan(0.01)
})
