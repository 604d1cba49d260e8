import { describe, expect, it } from 'vitest'
import { settled } from '../../test/support/entries.ts'
import { sampleValue } from '../../test/support/parse-exposition.ts'
import { secondsToUs } from '../base/clock.ts'
import type { Entry } from '../domain/entry.ts'
import type { BackloggedTenant } from '../domain/share-path.ts'
import { Metrics } from './metrics.ts'

const reported = (atS: number, backlogged?: readonly BackloggedTenant[]): Entry => ({
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
  ...(backlogged !== undefined && { backlogged }),
})

const served = (atS: number, tenantId: string, cost: number, band: 'standard' | 'offline' = 'standard'): Entry =>
  settled({ at: secondsToUs(atS), tenantId, cost, band })

/** A minute of ticks, with these settled halfway. */
const minuteOf = (backlogged: readonly BackloggedTenant[], ended: readonly Entry[]): Entry[] =>
  Array.from({ length: 60 }, (_, s) => [reported(s, backlogged), ...(s === 30 ? ended : [])]).flat()

function gauges(entries: readonly Entry[]): {
  readonly index: number | undefined
  readonly tenants: number | undefined
} {
  const metrics = new Metrics({ version: '0', nodeVersion: '0' })
  for (const entry of entries) metrics.take(entry)
  const text = metrics.text()
  return {
    index: sampleValue(text, 'spillway_pool_fairness_index', { pool: 'pool-1' }),
    tenants: sampleValue(text, 'spillway_pool_backlogged_tenants', { pool: 'pool-1' }),
  }
}

const SHARES = [
  { tenantId: 'a', share: 0.5 },
  { tenantId: 'b', share: 0.25 },
  { tenantId: 'c', share: 0.25 },
]

describe('the index of fairness', () => {
  it('is 1 when work goes by shares, and falls as one gets more', () => {
    const fair = minuteOf(SHARES, [served(30, 'a', 600), served(30, 'b', 300), served(30, 'c', 300)])
    expect(gauges(fair)).toEqual({ index: expect.closeTo(1), tenants: 3 })
    const unfair = minuteOf(SHARES, [served(30, 'a', 900), served(30, 'b', 150), served(30, 'c', 150)])
    expect(gauges(unfair)).toEqual({ index: expect.closeTo(25 / 33), tenants: 3 })
    expect(gauges(minuteOf(SHARES, [served(30, 'b', 900)])).index).toBeCloseTo(1 / 3)
  })
  it('leaves out who seldom waits, offline work and tenants that never wait', () => {
    const ended = [
      served(30, 'a', 500),
      served(30, 'b', 500),
      served(30, 'c', 9_000, 'offline'),
      served(30, 'd', 9_000),
    ]
    const seldom = minuteOf(SHARES.slice(0, 2), ended).map((entry, i) =>
      entry.kind === 'pool-reported' && i % 2 === 0 ? reported(entry.at / 1e6, SHARES) : entry,
    )
    expect(gauges(seldom)).toEqual({ index: expect.closeTo(0.9), tenants: 2 })
  })
  it('has no series for fewer than two tenants, in the first half minute, and a minute after everybody went', () => {
    const ended = [served(30, 'a', 600), served(30, 'b', 300)]
    expect(gauges(minuteOf(SHARES.slice(0, 1), ended))).toEqual({ index: undefined, tenants: 1 })
    expect(gauges(minuteOf(SHARES, ended).slice(0, 20))).toEqual({ index: undefined, tenants: 0 })
    const gone = Array.from({ length: 70 }, (_, s) => reported(60 + s))
    expect(gauges([...minuteOf(SHARES, ended), ...gone])).toEqual({ index: undefined, tenants: 0 })
    const removed = { kind: 'fleet-changed', at: secondsToUs(61), what: 'pool-removed', name: 'pool-1' } as Entry
    expect(gauges([...minuteOf(SHARES, ended), removed])).toEqual({ index: undefined, tenants: undefined })
  })
  it('follows a bounded number of tenants, and new ones as the old go', () => {
    const crowd = Array.from({ length: 300 }, (_, i) => ({ tenantId: `t${i}`, share: 1 / 300 }))
    expect(gauges(minuteOf(crowd, [])).tenants).toBe(200)
    const newcomers = [{ tenantId: 'x', share: 1 }]
    const later = Array.from({ length: 125 }, (_, s) => reported(60 + s, newcomers))
    expect(gauges([...minuteOf(crowd, []), ...later]).tenants).toBe(1)
  })
})
