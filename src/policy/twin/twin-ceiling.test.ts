import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CEILING_DEFAULTS, TwinCeiling } from './twin-ceiling.ts'

const SECOND = 1_000_000

/** A ceiling in use for so many seconds, ten answers in each. */
function busy(seconds: number, ceiling = new TwinCeiling(1_000)): TwinCeiling {
  for (let i = 0; i < 10 * seconds; i++) ceiling.served((i * SECOND) / 10, ceiling.sequencesMax)
  return ceiling
}

describe('a ceiling that learns', () => {
  it('grows by a factor, once a second, while it is in use', () => {
    expect(new TwinCeiling(1_000).sequencesMax).toBe(48)
    expect([1, 2, 3, 4, 5].map((seconds) => busy(seconds).sequencesMax)).toEqual([72, 108, 162, 243, 364])
  })

  it('does not grow while less than half of it is used, nor beyond what is configured', () => {
    const ceiling = new TwinCeiling(1_000)
    for (let i = 0; i < 10; i++) ceiling.served(i * SECOND, 23)
    expect(ceiling.sequencesMax).toBe(48)
    ceiling.served(10 * SECOND, 24)
    expect(ceiling.sequencesMax).toBe(72)
    expect(busy(30, new TwinCeiling(100)).sequencesMax).toBe(100)
    expect(new TwinCeiling(8).sequencesMax).toBe(8)
  })

  it('is lowered to what runs when requests wait inside, or memory is full', () => {
    const waiting = busy(5)
    waiting.report(5 * SECOND, { runningCount: 100, waitingCount: 20 })
    expect([waiting.sequencesMax, waiting.because]).toEqual([100, 'requests wait inside the engine'])
    const full = busy(5)
    full.report(5 * SECOND, { runningCount: 90, waitingCount: 0, kvUsageRatio: 0.96 })
    expect([full.sequencesMax, full.because]).toEqual([90, 'the memory of the engine is full'])
  })

  it('is lowered further when the engine has preempted since the last report', () => {
    const ceiling = busy(5)
    ceiling.report(5 * SECOND, { runningCount: 100, preemptionCount: 7 })
    expect(ceiling.sequencesMax).toBe(364)
    ceiling.report(6 * SECOND, { runningCount: 100, preemptionCount: 7 })
    expect(ceiling.sequencesMax).toBe(364)
    ceiling.report(7 * SECOND, { runningCount: 100, preemptionCount: 9 })
    expect([ceiling.sequencesMax, ceiling.because]).toEqual([80, 'the engine preempted sequences'])
    // An engine that was restarted counts from zero: that is no preemption.
    ceiling.report(8 * SECOND, { runningCount: 10, preemptionCount: 0 })
    expect(ceiling.sequencesMax).toBe(80)
  })

  it('takes a missing gauge for nothing, neither for zero nor for trouble', () => {
    const ceiling = busy(5)
    ceiling.report(5 * SECOND, {})
    ceiling.report(6 * SECOND, { waitingCount: 500, kvUsageRatio: 1, preemptionCount: 5 })
    ceiling.report(7 * SECOND, { runningCount: 3 })
    expect([ceiling.sequencesMax, ceiling.because]).toEqual([364, 'in use, and nothing queues inside the engine'])
  })

  it('takes a few that wait between two steps for no queue', () => {
    const ceiling = busy(5)
    ceiling.report(5 * SECOND, { runningCount: 10, waitingCount: CEILING_DEFAULTS.waitingMax })
    expect(ceiling.sequencesMax).toBe(364)
  })

  it('finds the queue of an engine without gauges by its first tokens', () => {
    const ceiling = busy(5)
    for (let i = 0; i < 7; i++) ceiling.begun(6 * SECOND + i, 5, 200)
    expect(ceiling.sequencesMax).toBe(364)
    ceiling.begun(6 * SECOND + 7, 5, 200)
    expect([ceiling.sequencesMax, ceiling.because]).toEqual([160, 'first tokens come late, as behind a queue'])
    // Once a second: the next ones were sent before it was lowered.
    for (let i = 0; i < 20; i++) ceiling.begun(6.5 * SECOND + i, 5, 160)
    expect(ceiling.sequencesMax).toBe(160)
  })

  it('is not lowered to the few that come after a stall, when those come in time', () => {
    const ceiling = busy(5)
    // All of a stall's first tokens come at once, in the second after the last change.
    for (let i = 0; i < 29; i++) ceiling.begun(4.9 * SECOND + i, 2_000, 29)
    expect(ceiling.sequencesMax).toBe(364)
    ceiling.begun(5.5 * SECOND, 1, 1)
    ceiling.begun(6 * SECOND, 1, 1)
    expect(ceiling.sequencesMax).toBe(364)
  })

  it('is not lowered by first tokens that are as expected, nor where the engine tells its queue itself', () => {
    const punctual = busy(5)
    for (let i = 0; i < 100; i++) punctual.begun(6 * SECOND + i, 2, 200)
    expect(punctual.sequencesMax).toBe(364)
    const told = busy(5)
    told.report(5 * SECOND, { runningCount: 200, waitingCount: 0 })
    for (let i = 0; i < 100; i++) told.begun(7 * SECOND + i, 9, 200)
    expect(told.sequencesMax).toBe(364)
    // The gauges have gone: first tokens are all that tells again.
    told.report(8 * SECOND, {})
    for (let i = 0; i < 100; i++) told.begun(9 * SECOND + i, 9, 200)
    expect(told.sequencesMax).toBe(160)
  })

  it('grows again after it was lowered, but not in the second after', () => {
    const ceiling = busy(5)
    ceiling.report(5 * SECOND, { runningCount: 20, waitingCount: 50 })
    ceiling.served(5.9 * SECOND, 20)
    expect(ceiling.sequencesMax).toBe(20)
    ceiling.served(6 * SECOND, 20)
    expect(ceiling.sequencesMax).toBe(30)
  })

  it('stays between one and what is configured, whatever it hears', () => {
    const gauge = fc.option(fc.integer({ min: 0, max: 2_000 }), { nil: undefined })
    const command = fc.oneof(
      fc.record({ kind: fc.constant('served' as const), sequences: fc.integer({ min: 0, max: 2_000 }) }),
      fc.record({
        kind: fc.constant('begun' as const),
        sequences: fc.integer({ min: 0, max: 2_000 }),
        lateness: fc.double({ min: 0, max: 1e9, noNaN: true }),
      }),
      fc.record({
        kind: fc.constant('report' as const),
        runningCount: gauge,
        waitingCount: gauge,
        preemptionCount: gauge,
      }),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.array(command, { maxLength: 60 }), (most, commands) => {
        const ceiling = new TwinCeiling(most)
        commands.forEach((one, i) => {
          const now = i * 300_000
          if (one.kind === 'served') ceiling.served(now, one.sequences)
          else if (one.kind === 'begun') ceiling.begun(now, one.lateness, one.sequences)
          else ceiling.report(now, one)
          expect(ceiling.sequencesMax).toBeGreaterThanOrEqual(1)
          expect(ceiling.sequencesMax).toBeLessThanOrEqual(most)
        })
      }),
    )
  })
})
