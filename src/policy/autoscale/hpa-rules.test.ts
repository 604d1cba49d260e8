import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../../base/clock.ts'
import type { PoolSeen } from '../../domain/autoscale.ts'
import { HpaRule } from './hpa-rules.ts'

const TERMS = { utilisationRatio: 0.8, drainTargetUs: secondsToUs(60), queueTarget: 20, minWarm: 1, max: 100 }

const seenOf = (more: Partial<PoolSeen>): PoolSeen => ({
  offeredCost: 1,
  elapsedUs: secondsToUs(1),
  backlogCost: 0,
  queuedCount: 0,
  heldCount: 0,
  drainPerReplicaUs: 1e-6,
  readyCount: 4,
  pendingCount: 0,
  workRatio: undefined,
  coldStartUs: secondsToUs(60),
  ...more,
})

/** What is wanted after each second of what is seen in it. */
function play(rule: HpaRule, seconds: readonly Partial<PoolSeen>[], first = 4): number[] {
  let current = first
  return seconds.map((seen, i) => {
    current = rule.wanted(secondsToUs(i + 1), seenOf(seen), current)
    return current
  })
}

const times = (count: number, seen: Partial<PoolSeen>): Partial<PoolSeen>[] => Array.from({ length: count }, () => seen)

describe('the rule of Kubernetes', () => {
  it('follows the formula at the first look: 30 each, 20 wanted, 4 replicas make 6', () => {
    expect(play(new HpaRule(TERMS, 'queue'), [{ heldCount: 120 }])).toEqual([6])
  })

  it('stays within a tenth of its target', () => {
    const counts = play(new HpaRule(TERMS, 'work'), times(60, { workRatio: 0.87 }))
    expect(new Set(counts)).toEqual(new Set([4]))
  })

  it('reads metrics every 15 s that are 7 s old', () => {
    const calm = { heldCount: 80 }
    const busy = { heldCount: 120 }
    // Looks are at 1, 16, 31 s …; what is read at 16 s was collected at 9 s.
    expect(play(new HpaRule(TERMS, 'queue'), [...times(8, calm), ...times(8, busy)])[15]).toBe(6)
    const later = play(new HpaRule(TERMS, 'queue'), [...times(9, calm), ...times(22, busy)])
    expect([later[15], later[30]]).toEqual([4, 6])
    const atOnce = play(new HpaRule(TERMS, 'queue', 0), [...times(15, calm), busy])
    expect(atOnce[15]).toBe(6)
  })

  it('counts nobody twice who became ready after metrics were collected', () => {
    // At 16 s eight are ready, of whom four were measured, at one and a half times the target: six are enough.
    const seconds = [{ heldCount: 80 }, ...times(9, { heldCount: 120 }), ...times(6, { heldCount: 120, readyCount: 8 })]
    const rule = new HpaRule(TERMS, 'queue')
    for (const [i, seen] of seconds.entries())
      expect(rule.wanted(secondsToUs(i + 1), seenOf(seen), 8)).toBeLessThanOrEqual(8)
  })

  it('goes up by four or twice at a time, and down by the highest of five minutes', () => {
    const up = play(new HpaRule(TERMS, 'queue'), times(1, { heldCount: 4_000 }))
    expect(up).toEqual([8])
    const down = play(new HpaRule(TERMS, 'work'), [...times(1, { workRatio: 0.8 }), ...times(400, { workRatio: 0.2 })])
    const fell = down.findIndex((count) => count < 4)
    expect(fell).toBeGreaterThan(299)
    expect(fell).toBeLessThan(330)
    expect(down.at(-1)).toBe(1)
  })
})
