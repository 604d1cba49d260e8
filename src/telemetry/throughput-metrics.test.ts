import { describe, expect, it } from 'vitest'
import { settled } from '../../test/support/entries.ts'
import { sampleValue } from '../../test/support/parse-exposition.ts'
import { secondsToUs } from '../base/clock.ts'
import type { Entry } from '../domain/entry.ts'
import { Metrics } from './metrics.ts'
import { MinuteRate } from './minute-rate.ts'

const reported = (atS: number, poolId = 'pool-1'): Entry => ({
  kind: 'pool-reported',
  at: secondsToUs(atS),
  poolId,
  queuedCount: 0,
  queuedCost: 0,
  heldCount: 0,
  readyReplicaCount: 1,
  pressure: 0,
  drainPerUs: 1,
  falseRejects: 0,
  rightRejects: 0,
  observedCount: 0,
  falseAdmits: 0,
})

const usage = { promptTokens: 6_000, cachedTokens: 1_200, outputTokens: 600 }

function ratesAfter(entries: readonly Entry[], pool = 'pool-1'): ReadonlyArray<number | undefined> {
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  for (const entry of entries) metrics.take(entry)
  const text = metrics.text()
  return ['prompt', 'cached', 'output'].map((kind) =>
    sampleValue(text, 'spillway_pool_tokens_per_second', { pool, kind }),
  )
}

describe('tokens a second', () => {
  it('are those of the last minute, of the pool that answered, and none when nothing comes any more', () => {
    const told = [reported(1), reported(1, 'pool-2'), settled({ at: secondsToUs(3), usage })]
    expect(ratesAfter([...told, reported(4)])).toEqual([100, 20, 10])
    expect(ratesAfter([...told, reported(4, 'pool-2')], 'pool-2')).toEqual([0, 0, 0])
    expect(ratesAfter([...told, reported(59)])).toEqual([100, 20, 10])
    expect(ratesAfter([...told, reported(65)])).toEqual([0, 0, 0])
  })
  it('go with their pool', () => {
    const gone = { kind: 'fleet-changed', at: secondsToUs(5), what: 'pool-removed', name: 'pool-1' } as Entry
    expect(ratesAfter([reported(1), settled({ usage }), gone])).toEqual([undefined, undefined, undefined])
    // An answer that settles after its pool is gone brings nothing back.
    expect(ratesAfter([reported(1), gone, settled({ usage })])).toEqual([undefined, undefined, undefined])
  })
})

describe('MinuteRate', () => {
  it('is the mean of a steady stream, and forgets everything over a long silence', () => {
    const rate = new MinuteRate()
    for (let s = 0; s < 300; s++) rate.add(secondsToUs(s), 7)
    expect(rate.perSecond(secondsToUs(299))).toBe(7)
    expect(rate.perSecond(secondsToUs(100_000))).toBe(0)
  })
  it('counts an entry that comes late as new', () => {
    const rate = new MinuteRate()
    rate.add(secondsToUs(100), 60)
    rate.add(secondsToUs(10), 60)
    expect(rate.perSecond(secondsToUs(100))).toBe(2)
  })
})
