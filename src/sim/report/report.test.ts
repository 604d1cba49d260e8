import { describe, expect, it } from 'vitest'
import { makeTenant } from '../../../test/support/demand.ts'
import { refused, settled, story } from '../../../test/support/entries.ts'
import { msToUs, secondsToUs } from '../../base/clock.ts'
import type { Entry, Settled } from '../../domain/entry.ts'
import { Gaps } from '../../domain/gaps.ts'
import { Collector } from './collector.ts'
import { type EngineLook, enginesUse, makeReport, type Report } from './report.ts'

/**
 * The figures that people judge by, against a journal made by hand: ten seconds, seven tickets of two tenants, and every
 * number below worked out on paper.
 *
 *   acme    promise: first token 500 ms, 50 ms a token
 *     good          first token after 400 ms, 10 tokens 40 ms apart
 *     late          first token after 900 ms: beyond the promise, within twice the promise
 *     slow          first token after 400 ms, 10 tokens 60 ms apart
 *     rejected      never queued
 *     expired       admitted, and no turn
 *     cancelled     the client left
 *   globex  promise: first token 2,000 ms, 100 ms a token, weight 3
 *     lesser        first token after 1,500 ms, 10 tokens 40 ms apart, on a lower rung
 */
const SLO = { name: 'tight', ttftUs: msToUs(500), interTokenUs: msToUs(50), totalUs: secondsToUs(60) }
const LOOSE = { name: 'loose', ttftUs: msToUs(2_000), interTokenUs: msToUs(100), totalUs: secondsToUs(60) }

interface Answer {
  readonly ticketId: string
  readonly atMs: number
  readonly firstMs: number
  readonly gapMs: number
}

function answered({ ticketId, atMs, firstMs, gapMs }: Answer, overrides: Partial<Settled> = {}): Entry[] {
  const arrivedAt = msToUs(atMs)
  const firstTokenAt = arrivedAt + msToUs(firstMs)
  const lastTokenAt = firstTokenAt + msToUs(9 * gapMs)
  const gaps = new Gaps()
  gaps.observe(msToUs(gapMs), 9)
  return story(
    settled({
      ticketId,
      arrivedAt,
      admittedAt: arrivedAt,
      grantedAt: arrivedAt + msToUs(100),
      firstTokenAt,
      lastTokenAt,
      at: lastTokenAt,
      deadlineAt: arrivedAt + secondsToUs(60),
      gaps,
      usage: { promptTokens: 100, cachedTokens: 40, outputTokens: 10 },
      ...overrides,
    }),
  )
}

function journal(): Entry[] {
  const rejected = refused({ ticketId: 'rejected', arrivedAt: msToUs(3_000), at: msToUs(3_000) })
  const nothing = { promptTokens: 0, cachedTokens: 0, outputTokens: 0 }
  const expired = settled({
    ticketId: 'expired',
    outcome: 'expired',
    refusal: { code: 'waited-too-long', because: 'waited', blame: 'platform', retryAfterUs: 1_000_000 },
    usage: nothing,
    attempts: 0,
    arrivedAt: msToUs(4_000),
    admittedAt: msToUs(4_000),
    grantedAt: undefined,
    firstTokenAt: undefined,
    lastTokenAt: undefined,
    at: msToUs(5_000),
    gaps: undefined,
  })
  const [expiredArrived, expiredAdmitted] = story(expired)
  const cancelled = answered(
    { ticketId: 'cancelled', atMs: 5_000, firstMs: 400, gapMs: 40 },
    { outcome: 'cancelled', usage: { promptTokens: 100, cachedTokens: 0, outputTokens: 5 } },
  )
  return [
    ...answered({ ticketId: 'good', atMs: 0, firstMs: 400, gapMs: 40 }),
    ...answered({ ticketId: 'late', atMs: 1_000, firstMs: 900, gapMs: 40 }),
    ...answered({ ticketId: 'slow', atMs: 2_000, firstMs: 400, gapMs: 60 }),
    story(rejected)[0] as Entry,
    rejected,
    expiredArrived as Entry,
    expiredAdmitted as Entry,
    expired,
    ...cancelled,
    ...answered(
      { ticketId: 'lesser', atMs: 6_000, firstMs: 1_500, gapMs: 40 },
      { tenantId: 'globex', rung: 'cap-output' },
    ),
  ]
}

function report(): Report {
  const collector = new Collector({
    tenants: new Map([
      ['acme', makeTenant('acme', { slo: SLO })],
      ['globex', makeTenant('globex', { slo: LOOSE, weight: 3 })],
    ]),
    startAt: 0,
    warmUntil: 0,
    windowUs: secondsToUs(5),
    outputWeight: 4,
    parts: new Map([['end', { fromAt: secondsToUs(5), toAt: secondsToUs(10) }]]),
  })
  for (const entry of journal()) collector.take(entry)
  return makeReport(collector, {
    scenario: 'by-hand',
    seed: 1,
    endAt: secondsToUs(10),
    engines: enginesUse(new Map(), new Map(), secondsToUs(10)),
    engineParts: new Map(),
    usdPerHour: 36,
    laws: [],
    wallSeconds: 2,
  })
}

describe('a report of a journal made by hand', () => {
  const { tenants, ...all } = report()
  const { acme, globex } = tenants as Record<'acme' | 'globex', Report['tenants'][string]>

  it('counts every outcome once', () => {
    expect(all.requests).toMatchObject({
      arrived: 7,
      completed: 4,
      rejected: 1,
      expired: 1,
      cancelled: 1,
      evicted: 0,
      failed: 0,
      shed: 2,
    })
    expect(acme.requests).toMatchObject({ arrived: 6, completed: 3, shed: 2 })
  })

  it('calls good what kept its own promise, of all that asked', () => {
    // acme: one of six. globex: one of one. A ratio over the admitted would be 1/5, twice the promise 2/6.
    expect(acme.goodput.ratio).toBeCloseTo(1 / 6, 10)
    expect(globex.goodput.ratio).toBe(1)
    expect(all.goodput.ratio).toBeCloseTo(2 / 7, 10)
    expect(all.goodput.requestsPerS).toBeCloseTo(0.2, 10)
    expect(all.goodput.tokensPerS).toBeCloseTo(2, 10)
  })

  it('calls late what was admitted and missed its first token or its place', () => {
    // late and expired, of the five that were admitted; a slow pace is not late.
    expect(acme).toMatchObject({ admitted: 5, late: 2, lateRatio: 2 / 5 })
    expect(globex).toMatchObject({ admitted: 1, late: 0, degraded: 1 })
    expect(all.degraded).toBe(1)
  })

  it('adds up tokens and work', () => {
    // Four answers of 100 prompt tokens (40 cached) and 10 of output, and a cancelled one of 100 and 5.
    expect(all.tokens).toEqual({ prompt: 500, cached: 160, output: 45 })
    // 4 · (60 + 4 · 10) + (100 + 4 · 5)
    expect(all.served).toBe(520)
    expect(globex.served).toBe(100)
    expect(all.cost).toMatchObject({ perHour: 36, perMillionTokens: (0.1 / 545) * 1e6 })
    expect(all.cost.perTenant['globex']).toBeCloseTo(0.1 * (100 / 520), 12)
  })

  it('tells times in milliseconds, within a bucket of 2 %', () => {
    const { ttft, e2e, itl, wait } = globex.latency
    for (const [seen, ms] of [
      [ttft.p50, 1_500],
      [e2e.p50, 1_860],
      [itl.p50, 40],
      [wait.p50, 100],
    ] as const) {
      expect(seen).toBeGreaterThan(0.98 * ms)
      expect(seen).toBeLessThan(1.02 * ms)
    }
    expect(all.latency.ttft.mean).toBeCloseTo((400 + 900 + 400 + 400 + 1_500) / 5, 6)
  })

  it('tells parts by when tickets arrived', () => {
    expect(all.parts['end']?.requests).toMatchObject({ arrived: 2, completed: 1, cancelled: 1 })
    expect(all.parts['end']?.goodput).toMatchObject({ ratio: 1 / 2, requestsPerS: 1 / 5 })
    expect(all.refusals).toEqual({ 'lane-full': 1, 'waited-too-long': 1 })
  })

  it('tells its own speed', () => expect(all.wall).toEqual({ seconds: 2, speedup: 5, requestsPerS: 3.5 }))
})

describe('how engines were used', () => {
  const view = {
    running: 0,
    waiting: 0,
    blockCount: 100,
    blocksFree: 50,
    kvTokensMax: 1_600,
    kvUsageRatio: 0.5,
    blocksCached: 0,
  }
  const counters = { preemptions: 0, promptTokens: 0, generationTokens: 0, contextTokens: 0, finished: 0, aborted: 0 }
  const look = (busyUs: number, steps: number, fullWorkUs: number): EngineLook => {
    const prefix = { prefixQueries: steps * 10, prefixHits: steps * 5 }
    const engine = { ...view, ...counters, ...prefix, busyUs, steps, speculation: undefined }
    return new Map([['pool-1', { replicaCount: 1, views: [engine], fullWorkUs }]])
  }

  it('tells busy time from work', () => {
    const { engine, pools } = enginesUse(look(1_000_000, 10, 50_000), look(5_000_000, 110, 850_000), 4_000_000)
    expect(engine).toEqual({
      busy: 1,
      utilisation: 0.2,
      kv: 0.5,
      preemptions: 0,
      prefixHitRatio: 0.5,
      stepMs: 40,
      steps: 100,
    })
    expect(pools['pool-1']).toEqual(engine)
  })
})
