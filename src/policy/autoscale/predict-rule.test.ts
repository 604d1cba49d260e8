import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../../base/clock.ts'
import { Rng } from '../../base/rng.ts'
import type { PoolSeen } from '../../domain/autoscale.ts'
import { PredictRule } from './predict-rule.ts'

const TERMS = { utilisationRatio: 0.85, drainTargetUs: secondsToUs(60), queueTarget: 20, minWarm: 1, max: 40 }
const SECOND = secondsToUs(1)

/** One replica does a unit of work a second. */
const seenOf = (work: number, coldStartS: number, more: Partial<PoolSeen> = {}): PoolSeen => ({
  offeredCost: work,
  elapsedUs: SECOND,
  backlogCost: 0,
  queuedCount: 0,
  heldCount: 0,
  drainPerReplicaUs: 1 / SECOND,
  readyCount: 1,
  pendingCount: 0,
  workRatio: undefined,
  coldStartUs: secondsToUs(coldStartS),
  ...more,
})

function play(workAt: (second: number) => number, seconds: number, coldStartS: number): number[] {
  const rule = new PredictRule(TERMS)
  let current = 1
  return Array.from({ length: seconds }, (_, second) => {
    current = rule.wanted(secondsToUs(second + 1), seenOf(workAt(second), coldStartS), current)
    return current
  })
}

function turnsOf(counts: readonly number[]): number {
  let [turns, direction] = [0, 0]
  for (let i = 1; i < counts.length; i++) {
    const towards = Math.sign((counts[i] as number) - (counts[i - 1] as number))
    if (towards === 0) continue
    if (direction !== 0 && towards !== direction) turns++
    direction = towards
  }
  return turns
}

describe('the predicting rule', () => {
  it('goes up at once, and down only after a cold start and a quarter', () => {
    const counts = play((second) => (second < 300 ? 4 : 16), 900, 60)
    const before = counts[299] as number
    expect(counts.findIndex((count, i) => i >= 300 && count > before)).toBeLessThan(310)
    const falling = play((second) => (second < 300 ? 16 : 4), 900, 60)
    const high = falling[299] as number
    const fell = falling.findIndex((count, i) => i >= 300 && count < high)
    expect(fell).toBeGreaterThanOrEqual(300 + 75)
    expect(falling.at(-1)).toBeLessThan(high)
  })

  it('orders for a cold start ahead on a ramp', () => {
    const near = play((second) => 4 + second / 100, 1_000, 15)
    const far = play((second) => 4 + second / 100, 1_000, 180)
    expect(far.at(-1)).toBeGreaterThan(near.at(-1) as number)
  })

  it('changes direction at most once in two cold starts under steady, noisy demand', () => {
    for (const coldStartS of [15, 60, 180]) {
      for (let seed = 1; seed <= 12; seed++) {
        const rng = Rng.stream(seed, 'noise')
        const seconds = Math.max(3_600, 20 * coldStartS)
        // Twice the scatter that a hundred requests a second have.
        const noise = (): number => 0.3 * (rng.next() + rng.next() + rng.next() + rng.next() - 2)
        const mean = 2 + 20 * rng.next()
        const counts = play(() => Math.max(0, mean * (1 + noise())), seconds, coldStartS)
        expect(turnsOf(counts)).toBeLessThanOrEqual(seconds / (2 * coldStartS))
      }
    }
  })

  it('never wants less where everything that is offered is more, and stays within its bounds', () => {
    const rng = Rng.stream(7, 'demand')
    for (let round = 0; round < 20; round++) {
      const work = Array.from({ length: 400 }, () => 60 * rng.next() * rng.next())
      const factor = 1 + rng.next()
      const less = new PredictRule(TERMS)
      const more = new PredictRule(TERMS)
      let [a, b] = [1, 1]
      for (const [second, cost] of work.entries()) {
        const now = secondsToUs(second + 1)
        const backlogCost = 10 * rng.next()
        a = less.wanted(now, seenOf(cost, 30, { backlogCost }), a)
        b = more.wanted(now, seenOf(cost * factor, 30, { backlogCost: backlogCost * factor }), b)
        expect(b).toBeGreaterThanOrEqual(a)
        expect(a).toBeGreaterThanOrEqual(TERMS.minWarm)
        expect(b).toBeLessThanOrEqual(TERMS.max)
      }
    }
  })
})
