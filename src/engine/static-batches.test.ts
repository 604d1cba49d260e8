import { describe, expect, it } from 'vitest'
import { Engine } from './engine.ts'
import type { EngineEvent } from './engine-event.ts'
import type { EngineLimits } from './engine-state.ts'
import type { ReferenceCoefficients } from './gpu-profile.ts'

/** A token takes 1 ms whatever the batch, a prompt of 10 tokens 10 ms. */
const PLAIN: ReferenceCoefficients = {
  kind: 'reference',
  prefillTokensPerSecond: 1_000,
  decodeTokensPerSecond: 1_000,
  batchShare: 0,
}

const LIMITS: EngineLimits = { sequencesMax: 4, tokenBudget: 100, blockCount: 100, blockTokens: 10 }

interface Arrival {
  readonly at: number
  readonly id: string
  readonly outputTokens: number
  readonly promptTokens?: number
}

function play(limits: Partial<EngineLimits>, arrivals: readonly Arrival[]): EngineEvent[] {
  const engine = new Engine({ coefficients: PLAIN, limits: { ...LIMITS, ...limits } })
  const events: EngineEvent[] = []
  const advanceTo = (until: number): void => {
    for (let at = engine.nextEventAt(); at !== undefined && at <= until; at = engine.nextEventAt()) {
      events.push(...engine.advance(at))
      engine.assertInvariants()
    }
  }
  for (const { at, id, outputTokens, promptTokens = 10 } of arrivals) {
    advanceTo(at - 1)
    engine.submit(at, { id, promptTokens, outputTokens })
  }
  advanceTo(Number.MAX_SAFE_INTEGER)
  return events
}

const firstTokenAt = (events: readonly EngineEvent[], id: string): number =>
  events.find((event) => event.kind === 'first-token' && event.id === id)?.at ?? -1

const endOf = (events: readonly EngineEvent[], id: string): number =>
  events.find((event) => event.kind === 'finished' && event.id === id)?.at ?? -1

describe('static batches', () => {
  const LATE: readonly Arrival[] = [
    { at: 0, id: 'long', outputTokens: 90 },
    { at: 0, id: 'short', outputTokens: 5 },
    { at: 1_000, id: 'late', outputTokens: 5 },
  ]

  it('let nobody join a batch that runs, where continuous batching does', () => {
    const joined = play({}, LATE)
    expect(firstTokenAt(joined, 'late')).toBeLessThan(endOf(joined, 'long'))
    const waited = play({ staticBatching: { windowUs: 0 } }, LATE)
    expect(endOf(waited, 'short')).toBeLessThan(endOf(waited, 'long'))
    expect(firstTokenAt(waited, 'late')).toBe(endOf(waited, 'long') + 10_000)
  })

  it('have no more members than places, in order of arrival', () => {
    const events = play(
      { staticBatching: { windowUs: 0 } },
      Array.from({ length: 6 }, (_, index) => ({ at: 0, id: `${index}`, outputTokens: 10 + index })),
    )
    expect(firstTokenAt(events, '4')).toBe(endOf(events, '3') + 20_000)
  })

  it('gather for a window when idle, from the first arrival on', () => {
    const events = play({ staticBatching: { windowUs: 10_000 } }, [
      { at: 0, id: 'a', outputTokens: 3 },
      { at: 7_000, id: 'b', outputTokens: 3 },
      { at: 11_000, id: 'c', outputTokens: 3 },
    ])
    expect(firstTokenAt(events, 'a')).toBe(10_000 + 20_000)
    expect(firstTokenAt(events, 'b')).toBe(firstTokenAt(events, 'a'))
    // c came during the batch and waited longer than a window: it goes when the batch ends.
    expect(firstTokenAt(events, 'c')).toBe(endOf(events, 'b') + 10_000)
  })

  it('wait on for the rest of the window when a batch ends before it does', () => {
    const events = play({ staticBatching: { windowUs: 10_000 } }, [
      { at: 0, id: 'a', outputTokens: 1 },
      { at: 15_000, id: 'b', outputTokens: 1 },
    ])
    expect(endOf(events, 'a')).toBe(20_000)
    expect(firstTokenAt(events, 'b')).toBe(25_000 + 10_000)
  })

  it('begin before the window is over when they are full', () => {
    const four = Array.from({ length: 4 }, (_, index) => ({ at: index * 1_000, id: `${index}`, outputTokens: 1 }))
    const events = play({ staticBatching: { windowUs: 10_000 } }, four)
    expect(firstTokenAt(events, '0')).toBe(3_000 + 40_000)
  })

  it('are grouped by what the blocks can hold to the end, so that nobody is preempted', () => {
    const events = play({ blockCount: 20, staticBatching: { windowUs: 10_000 } }, [
      { at: 0, id: 'a', outputTokens: 61, promptTokens: 20 },
      { at: 1_000, id: 'b', outputTokens: 61, promptTokens: 20 },
      { at: 2_000, id: 'c', outputTokens: 61, promptTokens: 20 },
    ])
    // Eight blocks each: two go together as soon as the third is known not to fit.
    expect(firstTokenAt(events, 'a')).toBe(2_000 + 40_000)
    expect(firstTokenAt(events, 'c')).toBe(endOf(events, 'b') + 20_000)
    const ends = events.filter((event) => event.kind === 'finished')
    expect(ends.map((event) => event.preemptions)).toEqual([0, 0, 0])
  })
})
