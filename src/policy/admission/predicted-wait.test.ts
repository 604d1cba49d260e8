import { describe, expect, it } from 'vitest'
import { DrainingPool } from '../../../test/support/draining-pool.ts'
import type { SharePath } from '../../domain/share-path.ts'
import type { Band } from '../../domain/tenant.ts'
import type { Newcomer } from './backlog.ts'
import { DrainRate } from './drain-rate.ts'
import { PredictedWait } from './predicted-wait.ts'
import { retryAfterUs } from './retry-after.ts'

const SECOND = 1_000_000

const shareOf = (id: string, weight = 1): SharePath => ({
  org: { id, weight },
  tenant: { id, weight },
  key: { id, weight: 1 },
})

const ticketOf = (tenant: string, cost: number, band: Band = 'standard'): Newcomer => ({
  share: shareOf(tenant),
  band,
  cost,
})

const ask = (wait: PredictedWait, now: number, ticket: Newcomer, hasRoom = true): number =>
  wait.waitUs(now, { ...ticket, hasRoom, replicaCount: 2 })

describe('predicted wait', () => {
  it('is zero before an idle pool, and not before a busy one', () => {
    const wait = new PredictedWait(0.015)
    expect(ask(wait, 0, ticketOf('a', 300))).toBe(0)
    expect(ask(wait, 0, ticketOf('a', 300), false)).toBe(10_000)
    expect(wait.waitUs(0, { ...ticketOf('a', 300), hasRoom: false, replicaCount: 0 })).toBe(Number.POSITIVE_INFINITY)
  })

  it('counts what fair sharing puts before it, band by band', () => {
    const wait = new PredictedWait(0.015)
    for (const ticket of [ticketOf('a', 100), ticketOf('b', 500), ticketOf('c', 2_000)]) wait.join(0, ticket)
    expect(ask(wait, 0, ticketOf('a', 300))).toBe(30_000)
    expect(ask(wait, 0, ticketOf('a', 300), false)).toBe(40_000)
    expect(ask(wait, 0, ticketOf('a', 300, 'interactive'))).toBe(20_000)
    // Offline goes after everything that waits elsewhere, and shares with other offline work.
    expect(ask(wait, 0, ticketOf('a', 300, 'offline'))).toBe(Math.ceil(2_600 / 0.03))
    wait.join(0, ticketOf('b', 900, 'offline'))
    expect(ask(wait, 0, ticketOf('a', 300))).toBe(30_000)
    expect(ask(wait, 0, ticketOf('a', 300, 'offline'))).toBe(Math.ceil(2_900 / 0.03))
  })

  it('waits for turns to end where all that may run do run', () => {
    const wait = new PredictedWait(0.015)
    const now = 10 * SECOND
    for (let i = 1; i <= 300; i++) wait.ended((i * now) / 300)
    for (let i = 0; i < 60; i++) wait.join(now, ticketOf('a', 300))
    const question = { ...ticketOf('a', 300), hasRoom: false, replicaCount: 2, lastsUs: 8 * SECOND }
    const byWorkUs = wait.waitUs(now, question)
    // 61 turns go before it or with it, and some 30 end in a second.
    const full = wait.waitUs(now, { ...question, turns: { running: 256, free: 0 } })
    expect(full).toBeGreaterThan(2 * SECOND)
    expect(full).toBeLessThan(2.3 * SECOND)
    const half = wait.waitUs(now, { ...question, turns: { running: 226, free: 30 } })
    expect(half).toBeLessThan(0.55 * full)
    expect(wait.waitUs(now, { ...question, turns: { running: 128, free: 128 } })).toBe(byWorkUs)
    // Offline work takes what is left over and has bounds of its own.
    const offline = { ...question, band: 'offline' as const }
    expect(wait.waitUs(now, { ...offline, turns: { running: 256, free: 0 } })).toBe(wait.waitUs(now, offline))
    for (let i = 0; i < 60; i++) wait.granted(now, ticketOf('a', 300))
    expect(wait.waitUs(now, { ...question, hasRoom: true, turns: { running: 256, free: 0 } })).toBe(0)
  })

  it('tells whose doing a wait is', () => {
    const wait = new PredictedWait(0.015)
    wait.join(0, ticketOf('a', 30_000))
    const question = { ...ticketOf('a', 300), hasRoom: true, replicaCount: 2 }
    expect(wait.waitUs(0, question)).toBe(SECOND)
    expect(wait.waitWithoutOwnUs(0, question)).toBe(0)
    wait.join(0, ticketOf('b', 30_000))
    expect(wait.waitWithoutOwnUs(0, question)).toBe(10_000)
  })

  it('counts nobody who left', () => {
    const wait = new PredictedWait(0.015)
    for (let i = 0; i < 50; i++) wait.join(i, ticketOf(`t${i}`, 10))
    for (let i = 0; i < 25; i++) wait.granted(100, ticketOf(`t${i}`, 10))
    for (let i = 25; i < 50; i++) wait.withdrawn(ticketOf(`t${i}`, 10))
    expect(wait.backlogCost).toBe(0)
    expect(ask(wait, 100, ticketOf('x', 10))).toBe(0)
  })
})

describe('drain rate', () => {
  it('starts from the prior and learns while work waits', () => {
    const rate = new DrainRate(0.02)
    expect(rate.perUs(0, 2, false)).toBe(0.04)
    rate.startedWaiting(0)
    for (let t = SECOND; t <= 60 * SECOND; t += SECOND) rate.observe(t, { cost: 20_000, replicaCount: 2 })
    expect(rate.perUs(60 * SECOND, 2, true)).toBeCloseTo(0.02, 3)
    expect(rate.perUs(60 * SECOND, 4, true)).toBeCloseTo(0.04, 2)
  })

  it('does not take idleness for slowness, but silence while work waits for it', () => {
    const wait = new PredictedWait(0.02)
    for (let t = 0; t < 3_600 * SECOND; t += 10 * SECOND) wait.begun(t, { grantedAt: t, cost: 100, replicaCount: 1 })
    expect(wait.drainPerUs(3_600 * SECOND, 1)).toBe(0.02)
    wait.join(3_600 * SECOND, ticketOf('a', 100))
    expect(wait.drainPerUs(3_600 * SECOND, 1)).toBe(0.02)
    expect(wait.drainPerUs(3_615 * SECOND, 1)).toBeCloseTo(0.005, 6)
  })
})

describe('short waits', () => {
  it('do not make a pool look faster than it is', () => {
    const wait = new PredictedWait(0.02)
    // Every second somebody waits for a millisecond, until what began half a second before him is done.
    for (let t = SECOND; t < 60 * SECOND; t += SECOND) {
      wait.join(t - 1_000, ticketOf('a', 100))
      wait.begun(t, { grantedAt: t - SECOND / 2, cost: 10_000, replicaCount: 1 })
      wait.granted(t, ticketOf('a', 100))
    }
    expect(wait.drainPerUs(60 * SECOND, 1)).toBe(0.02)
  })
})

describe('retry after', () => {
  it('adds jitter and never takes any away', () => {
    const late = { predictedUs: 5_200_000, affordableUs: 2_000_000 }
    expect(retryAfterUs({ ...late, jitter: 0 })).toBe(3_200_000)
    expect(retryAfterUs({ ...late, jitter: 0.5 })).toBe(3_520_000)
    expect(retryAfterUs({ predictedUs: 10, affordableUs: 9, jitter: 1 })).toBe(270_000)
    expect(retryAfterUs({ predictedUs: Number.POSITIVE_INFINITY, affordableUs: 9, jitter: 1 })).toBeUndefined()
  })

  it.each([
    ['alone', [40]],
    ['beside lighter lanes', [40, 10, 5]],
    ['beside heavier lanes', [20, 60, 60]],
    ['among many', [30, ...Array.from({ length: 30 }, (_, i) => 1 + (i % 7))]],
  ])('is true in a draining pool: %s', (_, lanes) => {
    const cost = 1_000
    const perUs = 0.04
    const affordableUs = 300_000
    const world = (): { pool: DrainingPool; wait: PredictedWait } => {
      const pool = new DrainingPool({ slotCount: 4, costPerUs: perUs, quantum: cost })
      const wait = new PredictedWait(perUs)
      lanes.forEach((count, lane) => {
        for (let i = 0; i < count; i++) {
          const ticket = ticketOf(`t${lane}`, cost)
          let grantedAt = 0
          wait.join(0, ticket)
          pool.offer(0, {
            tenantId: `t${lane}`,
            weight: 1,
            cost,
            trueCost: cost,
            startBy: Number.POSITIVE_INFINITY,
            onStart: (at) => {
              grantedAt = at
              wait.granted(at, ticket)
            },
            onEnd: (at) => wait.begun(at, { grantedAt, cost, replicaCount: 1 }),
            onExpire: () => {},
          })
        }
      })
      return { pool, wait }
    }
    const askAt = (at: number): number => {
      const { pool, wait } = world()
      pool.runUntil(at)
      return wait.waitUs(at, { ...ticketOf('t0', cost), hasRoom: pool.freeSlots > 0, replicaCount: 1 })
    }
    const told = retryAfterUs({ predictedUs: askAt(0), affordableUs, jitter: 0 }) as number
    // Two tickets' worth of slack, and a twentieth: the pool does whole tickets, the prediction is a fluid, and what
    // the others had served lately might have been a habit.
    const slackUs = (2 * cost) / perUs + told / 20
    expect(askAt(told)).toBeLessThanOrEqual(affordableUs + slackUs)
    expect(askAt(Math.floor(told * 0.7))).toBeGreaterThan(affordableUs)
  })
})
