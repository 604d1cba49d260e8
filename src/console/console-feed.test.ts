import { describe, expect, it } from 'vitest'
import { settled as settledEntry } from '../../test/support/entries.ts'
import type { Entry, PoolReported, Settled } from '../domain/entry.ts'
import { ConsoleFeed } from './console-feed.ts'
import { COUNTED, MinuteCounts } from './minute-counts.ts'

const SECOND = 1_000_000
const START = 1_000 * SECOND

const arrived = (at: number, tenantId = 'acme'): Entry => ({
  kind: 'arrived',
  at,
  ticketId: 'x',
  tenantId,
  keyId: 'k',
  model: 'm',
  band: 'standard',
  promptTokens: 1,
  isStreamed: true,
})
const settled = (at: number, more: Partial<Settled> = {}): Entry => ({
  ...settledEntry(),
  at,
  tenantId: 'acme',
  model: 'm',
  outcome: 'completed',
  refusal: undefined,
  isKept: true,
  arrivedAt: at - SECOND,
  firstTokenAt: at - SECOND / 2,
  ...more,
})
const refused = (at: number, tenantId = 'acme'): Entry =>
  settled(at, { tenantId, outcome: 'rejected', isKept: undefined, because: 'too late', ticketId: `t-${tenantId}` })

const report = (poolId: string): PoolReported => ({
  kind: 'pool-reported',
  at: START,
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

const column = (counts: readonly number[], name: (typeof COUNTED)[number]): number =>
  counts[COUNTED.indexOf(name)] as number

describe('MinuteCounts', () => {
  it('forgets what is older than a minute, and nothing sooner than 55 s', () => {
    const counts = new MinuteCounts()
    counts.add(START, 'arrived')
    expect(column(counts.view(START + 54 * SECOND), 'arrived')).toBe(1)
    expect(column(counts.view(START + 61 * SECOND), 'arrived')).toBe(0)
    counts.add(START + 10_000 * SECOND, 'arrived', 3)
    expect(column(counts.view(START + 10_000 * SECOND), 'arrived')).toBe(3)
  })
})

describe('ConsoleFeed', () => {
  it('counts a minute by tenant and model, and tells refusals with their reasons', () => {
    const feed = new ConsoleFeed()
    for (let i = 0; i < 5; i++) {
      feed.take(arrived(START + i))
      feed.take(settled(START + i, i === 0 ? { isKept: false } : {}))
    }
    feed.take(arrived(START + 9, 'globex'))
    feed.take(refused(START + 10, 'globex'))
    const view = feed.view(START + SECOND, 0)
    expect(view.tenants.map(({ name }) => name)).toEqual(['acme', 'globex'])
    const [acme] = view.tenants
    expect(column(acme!.counts, 'kept')).toBe(4)
    expect(column(acme!.counts, 'broken')).toBe(1)
    expect(column(view.total, 'refused')).toBe(1)
    expect(view.events).toMatchObject([{ kind: 'rejected', tenant: 'globex', ticketId: 't-globex' }])
    expect(view.events[0]?.text).toContain('too late')
    expect(feed.view(START + SECOND, feed.lastEvent).events).toEqual([])
  })

  it('tells what waits by org, tenant and key over all pools: twenty keys and the rest, a tenant its own', () => {
    const feed = new ConsoleFeed()
    const key = (n: number, count: number) => ({ orgId: `o${n % 2}`, tenantId: `t${n}`, keyId: `k${n}`, count })
    for (const poolId of ['p', 'q']) {
      const keys = Array.from({ length: 20 }, (_, i) => key(poolId === 'p' ? i : i + 5, 40 - i))
      feed.take({ ...report(poolId), waiting: { keys, otherKeyCount: 7, otherCount: 11 } })
    }
    const { queue } = feed.view(START, 0)
    expect(queue.rows).toHaveLength(20)
    expect(queue.rows[0]).toEqual(['o1', 't5', 'k5', 35 + 40])
    const told = queue.rows.reduce((sum, row) => sum + row[3], queue.rest)
    expect(told).toBe(2 * (20 * 40 - 190 + 11))
    expect(queue.restKeys).toBe(7 + 5)
    expect(feed.ofTenant(START, 't5', 0).queue).toEqual({ rows: [['o1', 't5', 'k5', 75]], rest: 0, restKeys: 0 })
    feed.take(report('p'))
    feed.take(report('q'))
    expect(feed.view(START, 0).queue).toEqual({ rows: [], rest: 0, restKeys: 0 })
  })

  it('gives a tenant its own figures and events, and nobody else’s', () => {
    const feed = new ConsoleFeed()
    for (const tenant of ['acme', 'globex']) {
      feed.take(arrived(START, tenant))
      feed.take(refused(START, tenant))
    }
    feed.take({ kind: 'replica-health', at: START, replicaId: 'r', health: 'ejected', because: 'slow' })
    const own = feed.ofTenant(START, 'acme', 0)
    expect(JSON.stringify(own)).not.toContain('globex')
    expect(own).toMatchObject({ pools: [], replicas: [], models: [], tenants: [{ name: 'acme' }] })
    expect(own.events).toHaveLength(1)
    expect(JSON.stringify(feed.ofTenant(START, 'nobody', 0))).not.toContain('acme')
  })

  it('is bounded: tenants, events of a second, events kept, seconds of history', () => {
    const feed = new ConsoleFeed()
    for (let i = 0; i < 5_000; i++) feed.take(refused(START + i, `tenant-${i}`))
    const view = feed.view(START + SECOND, 0)
    expect(view.tenants).toHaveLength(20)
    expect(view.others).toBeLessThanOrEqual(2_001)
    expect(view.events).toHaveLength(20)
    expect(view.eventsLeftOut).toBe(4_980)
    expect(JSON.stringify(view).length).toBeLessThan(64_000)
    for (let s = 0; s < 4_000; s++) feed.take(refused(START + s * SECOND))
    expect(feed.view(START + 4_000 * SECOND, 0).events).toHaveLength(200)
    expect(feed.history()).toHaveLength(3_600)
  })

  it('has a second of history for each second that brought an entry', () => {
    const feed = new ConsoleFeed()
    feed.take(arrived(START))
    feed.take(settled(START + 1))
    feed.take(arrived(START + SECOND))
    feed.take(arrived(START + 2 * SECOND))
    expect(feed.history()).toEqual([
      [1_000, 1, 1, 0, 0, 0, 0, 500],
      [1_001, 1, 0, 0, 0, 0, 0, 0],
    ])
  })

  it('counts what releases answered unseen, for a bounded number of releases', () => {
    const feed = new ConsoleFeed()
    const shadow = (releaseId: string, isEqual: boolean): Entry => ({
      kind: 'shadow-ended',
      at: START,
      ticketId: 'x',
      model: 'm',
      releaseId,
      outcome: isEqual ? 'completed' : 'failed',
      outputTokens: 1,
      primaryOutputTokens: 1,
      ...(isEqual && { difference: { isEqual, samePrefixRatio: 1, lengthRatio: 1, sameWordsRatio: 1 } }),
      because: 'sampled',
    })
    feed.take(shadow('m@2', true))
    feed.take(shadow('m@2', false))
    feed.take({ kind: 'holdout-evaluated', at: START, model: 'm', releaseId: 'm@2', itemId: 'i', score: 0.5 })
    expect(feed.view(START, 0).trials).toEqual([
      { model: 'm', release: 'm@2', copies: 2, failed: 1, compared: 1, equal: 1, sameWords: 1, items: 1, score: 0.5 },
    ])
    for (let i = 0; i < 200; i++) feed.take(shadow(`m@${i + 3}`, true))
    expect(feed.view(START, 0).trials).toHaveLength(50)
    expect(feed.ofTenant(START, 'acme', 0).trials).toEqual([])
  })

  it('tells what is out of order, since when, until it is not; a bounded number of it', () => {
    const feed = new ConsoleFeed()
    const sharing = (at: number, state: 'shared' | 'alone'): Entry => ({
      kind: 'sharing-changed',
      at,
      state,
      gatewayCount: 2,
      because: 'Redis is silent',
    })
    const ready = (at: number, replicaId: string, isReady: boolean): Entry => ({
      kind: 'replica-reported',
      at,
      replicaId,
      isReady,
      because: 'ECONNREFUSED',
    })
    feed.take(sharing(START, 'alone'))
    feed.take(ready(START + 1, 'r', false))
    feed.take(ready(START + SECOND, 'r', false))
    expect(feed.view(START, 0).troubles).toEqual([
      { what: 'replica r', since: START / 1_000 + 0.001, text: 'does not answer: ECONNREFUSED' },
      { what: 'shared limits', since: START / 1_000, text: 'at the safe share: Redis is silent' },
    ])
    expect(feed.ofTenant(START, 'acme', 0).troubles).toEqual([])
    feed.take(sharing(START + SECOND, 'shared'))
    feed.take({
      kind: 'fleet-changed',
      at: START,
      what: 'replica-removed',
      name: 'r',
      poolId: 'p',
      by: 'ada',
      because: 'gone',
    })
    const { troubles, events } = feed.view(START + SECOND, 0)
    expect(troubles).toEqual([])
    expect(events.map(({ text }) => text)).toContain('shared limits: in order again')
    expect(events.filter(({ text }) => text.startsWith('replica r: does not answer'))).toHaveLength(1)
    for (let i = 0; i < 500; i++) feed.take(ready(START, `r${i}`, false))
    expect(feed.view(START, 0).troubles).toHaveLength(50)
  })

  it('names the first of those who wait at a pool, with their shares', () => {
    const feed = new ConsoleFeed()
    const backlogged = Array.from({ length: 9 }, (_, i) => ({ tenantId: `t${i}`, share: 1 / 9 }))
    feed.take({
      kind: 'pool-reported',
      at: START,
      poolId: 'p',
      queuedCount: 9,
      queuedCost: 9,
      heldCount: 1,
      readyReplicaCount: 1,
      pressure: 1,
      drainPerUs: 1,
      falseRejects: 0,
      rightRejects: 0,
      observedCount: 0,
      falseAdmits: 0,
      backlogged,
    })
    const [pool] = feed.view(START, 0).pools
    expect(pool).toMatchObject({ waitingCount: 9, queued: 9 })
    expect(pool!.waiting).toHaveLength(3)
    expect(pool!.waiting[0]).toEqual(['t0', 0.111])
  })
})
