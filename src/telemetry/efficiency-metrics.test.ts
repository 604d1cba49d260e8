import { describe, expect, it } from 'vitest'
import { settled } from '../../test/support/entries.ts'
import { sampleValue } from '../../test/support/parse-exposition.ts'
import { secondsToUs } from '../base/clock.ts'
import type { Entry, PoolReported } from '../domain/entry.ts'
import { Metrics } from './metrics.ts'

const reported = (atS: number, facts: Partial<PoolReported> = {}): Entry => ({
  kind: 'pool-reported',
  at: secondsToUs(atS),
  poolId: 'pool-1',
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
  ...facts,
})

const work = (s: number, ofS: number) => ({ workUs: secondsToUs(s), workableUs: secondsToUs(ofS) })

function gaugesAfter(entries: readonly Entry[]): {
  readonly utilization: number | undefined
  readonly perHour: number | undefined
  readonly perMillion: number | undefined
} {
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  for (const entry of entries) metrics.take(entry)
  const text = metrics.text()
  const value = (name: string): number | undefined => sampleValue(text, name, { pool: 'pool-1' })
  return {
    utilization: value('spillway_pool_utilization_ratio'),
    perHour: value('spillway_pool_usd_per_hour'),
    perMillion: value('spillway_pool_usd_per_million_tokens'),
  }
}

describe('utilization', () => {
  it('is the work of the last minute by the time for it, and falls when the engines rest', () => {
    const half = [reported(1, work(0, 2)), reported(31, work(15, 32))]
    expect(gaugesAfter(half).utilization).toBeCloseTo(15 / 32)
    expect(gaugesAfter([...half, reported(61, work(15, 62))]).utilization).toBeCloseTo(15 / 60, 1)
    expect(gaugesAfter([...half, reported(61, work(15, 62)), reported(101, work(15, 102))]).utilization).toBe(0)
  })
  it('has no series where engines do not say how much they do, nor when they stop saying so', () => {
    expect(gaugesAfter([reported(1), reported(2)]).utilization).toBeUndefined()
    const silent = [reported(1, work(0, 1)), reported(10, work(5, 10)), reported(200, work(5, 10))]
    expect(gaugesAfter(silent).utilization).toBeUndefined()
  })
})

describe('cost', () => {
  const usage = { promptTokens: 1_000_000, cachedTokens: 900_000, outputTokens: 200_000 }

  it('is the price of the minute by the tokens that settled in it', () => {
    const priced = { usdPerHour: 8 }
    const told = [reported(1, priced), settled({ at: secondsToUs(3), usage }), reported(4, priced)]
    expect(gaugesAfter(told)).toMatchObject({ perHour: 8, perMillion: expect.closeTo(8 / 60 / 1.2) })
    expect(gaugesAfter([...told, reported(70, priced)])).toMatchObject({ perHour: 8, perMillion: undefined })
  })
  it('has no series without a price', () => {
    const told = [reported(1), settled({ at: secondsToUs(3), usage }), reported(4)]
    expect(gaugesAfter(told)).toMatchObject({ perHour: undefined, perMillion: undefined })
  })
  it('goes with its pool', () => {
    const facts = { ...work(5, 10), usdPerHour: 8 }
    const gone = { kind: 'fleet-changed', at: secondsToUs(5), what: 'pool-removed', name: 'pool-1' } as Entry
    const told = [reported(1, facts), settled({ at: secondsToUs(2), usage }), reported(3, facts)]
    expect(gaugesAfter(told)).toMatchObject({ utilization: 0.5, perHour: 8 })
    expect(gaugesAfter([...told, gone])).toEqual({ utilization: undefined, perHour: undefined, perMillion: undefined })
  })
})
