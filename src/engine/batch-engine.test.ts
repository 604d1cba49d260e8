import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { batchUs, curveCost, encoderCost } from './batch-cost.ts'
import { BatchEngine, type BatchOptions } from './batch-engine.ts'
import type { EngineEvent, FinishedEvent } from './engine-event.ts'
import type { GpuProfile } from './gpu-profile.ts'
import { findGpuProfile } from './gpu-profiles.ts'

const CURVE = [
  { size: 1, us: 10_000 },
  { size: 8, us: 24_000 },
]
const options: BatchOptions = { batchSizeMax: 8, batchTimeoutUs: 5_000, cost: curveCost(CURVE) }

function run(arrivals: readonly number[], more: Partial<BatchOptions> = {}): EngineEvent[] {
  const engine = new BatchEngine({ ...options, ...more })
  const events: EngineEvent[] = []
  const drain = (until: number): void => {
    for (let at = engine.nextEventAt(); at !== undefined && at < until; at = engine.nextEventAt()) {
      events.push(...engine.advance(at))
      engine.assertInvariants()
    }
  }
  for (const [i, at] of arrivals.entries()) {
    drain(at)
    engine.submit(at, { id: String(i), promptTokens: 10 })
  }
  drain(Number.POSITIVE_INFINITY)
  return events
}

describe('dynamic batching', () => {
  it('waits for company until the timeout', () => {
    expect(run([0, 1_000, 2_000]).map((event) => event.at)).toEqual([19_000, 19_000, 19_000])
  })

  it('starts at once when full', () => {
    expect(run([0, 0, 0, 0, 0, 0, 0, 0])[0]?.at).toBe(24_000)
  })

  it('is full when the next item would bring it over its tokens, though one alone may have more', () => {
    // Ten tokens each: three fit into 30, the fourth fills the batch at once and waits for the next.
    expect(run([0, 0, 0, 0], { batchTokensMax: 30 }).map((event) => event.at)).toEqual([14_000, 14_000, 14_000, 24_000])
    expect(run([0, 0], { batchTokensMax: 5 }).map((event) => event.at)).toEqual([10_000, 20_000])
  })

  it('starts the next batch as soon as the running one is over, if it is due', () => {
    // The batch of one runs from 5 to 15 ms; the item of 6 ms was due at 11 ms.
    expect(run([0, 6_000]).map((event) => event.at)).toEqual([15_000, 25_000])
  })

  it('refuses beyond its queue, and forgets whom it is told to', () => {
    const engine = new BatchEngine({ ...options, waitingMax: 1 })
    expect(engine.submit(0, { id: 'a', promptTokens: 1 })).toEqual({ kind: 'taken' })
    expect(engine.submit(0, { id: 'b', promptTokens: 1 })).toMatchObject({ code: 'queue-full' })
    expect(engine.abort(10, 'a')).toBe(true)
    expect(engine.abort(10, 'a')).toBe(false)
    expect(engine.nextEventAt()).toBeUndefined()
  })

  it('ends every item once, in batches within the limit, none waiting longer than it must', () => {
    const gaps = fc.array(fc.oneof(fc.constant(0), fc.nat(9_000)), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 5 }), (drawn, batchSizeMax) => {
        let at = 0
        const arrivals = drawn.map((gap) => (at += gap))
        const events = run(arrivals, { batchSizeMax }) as FinishedEvent[]
        expect(events.map((event) => event.id)).toEqual(arrivals.map((_, i) => String(i)))
        const batches = Map.groupBy(events, (event) => event.at)
        let freeAt = 0
        for (const [endAt, batch] of batches) {
          expect(batch.length).toBeLessThanOrEqual(batchSizeMax)
          const startAt = endAt - Math.round(batchUs(CURVE, batch.length))
          expect(startAt).toBeGreaterThanOrEqual(freeAt)
          const oldestAt = (batch[0] as FinishedEvent).arrivedAt
          expect(startAt).toBeLessThanOrEqual(Math.max(freeAt, oldestAt + options.batchTimeoutUs))
          freeAt = endAt
        }
      }),
    )
  })
})

describe('a batch cost curve', () => {
  it('is straight between points and beyond the last', () => {
    const sizes = [1, 2, 8, 15]
    expect(sizes.map((size) => batchUs(CURVE, size))).toEqual([10_000, 12_000, 24_000, 38_000])
    expect(batchUs([{ size: 4, us: 7 }], 9)).toBe(7)
  })

  it('of an encoder follows from the step time of a model of its size, and from the length of its items', () => {
    const { coefficients } = findGpuProfile('h200-llama-1b') as GpuProfile
    const cost = encoderCost(coefficients)
    const us = (size: number, tokens: number): number => cost(Array.from({ length: size }, () => tokens))
    // 256 tokens were measured at 1.78 ms, 8,192 in one prompt at 41 ms; 32 short prompts attend less.
    expect(us(1, 256)).toBeGreaterThan(1_700)
    expect(us(32, 256)).toBeLessThan(us(1, 8_192))
    expect(us(1, 8_192)).toBeGreaterThan(35_000)
    expect(us(32, 256)).toBeGreaterThan(us(32, 16))
  })
})
