import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Allowance } from '../../domain/tenant.ts'
import { Budgets, type Reservation } from './budgets.ts'
import type { Scope } from './scope-budget.ts'

const SECOND = 1_000_000

const scope = (noun: Scope['noun'], allowance: Allowance, over: Partial<Scope> = {}): Scope => ({
  id: noun,
  noun,
  allowance,
  ...over,
})

const tenant = scope('tenant', {
  requests: { perMinute: 600, burst: 100 },
  tokens: { perMinute: 60_000, burst: 10_000 },
})
const key = scope('key', { requests: { perMinute: 60, burst: 2 }, concurrencyMax: 3 })

describe('budgets', () => {
  it('takes from every scope, settles what was used, and tells the tightest for the headers', () => {
    const budgets = new Budgets()
    const held = budgets.reserve(0, [tenant, key], 2_000)
    expect(budgets.view(0, [tenant, key])).toEqual({
      requests: { limit: 2, remaining: 1, resetUs: SECOND },
      tokens: { limit: 10_000, remaining: 8_000, resetUs: 2 * SECOND },
    })
    budgets.settle(0, held, 1_200)
    expect(budgets.view(0, [tenant, key]).tokens?.remaining).toBe(8_800)
    const more = budgets.reserve(0, [tenant, key], 1_000)
    budgets.settle(0, more, 3_000)
    expect(budgets.view(0, [tenant, key]).tokens?.remaining).toBe(5_800)
  })

  it('knows the most that all scopes ever pay for at once', () => {
    const budgets = new Budgets()
    expect(budgets.tokensMaxOf([tenant, key])).toBe(10_000)
    expect(budgets.tokensMaxOf([key])).toBe(Number.POSITIVE_INFINITY)
    const quotas = [{ period: 'day' as const, tokensMax: 7_000 }]
    expect(budgets.tokensMaxOf([tenant, { ...key, quotas }])).toBe(7_000)
    expect(budgets.refusalFor(0, [tenant], 10_000)).toBeUndefined()
    expect(budgets.refusalFor(0, [tenant], 10_001)).toMatchObject({ retryAfterUs: undefined })
  })

  it('names the scope and bound that keeps it out for longest, and the time is true', () => {
    const budgets = new Budgets()
    for (let i = 0; i < 2; i++) budgets.settle(0, budgets.reserve(0, [tenant, key], 4_500), 4_500)
    const refusal = budgets.refusalFor(0, [tenant, key], 3_000)
    expect(refusal).toMatchObject({ code: 'rate-limit-tokens', blame: 'tenant', retryAfterUs: 2 * SECOND })
    expect(refusal?.detail).toMatchObject({ scope: 'tenant', bound: 'tokens-per-minute', limit: 60_000 })
    expect(budgets.refusalFor(0, [tenant, key], 10)).toMatchObject({
      code: 'rate-limit-requests',
      retryAfterUs: SECOND,
    })
    expect(budgets.refusalFor(2 * SECOND - 1, [tenant, key], 3_000)).toBeDefined()
    expect(budgets.refusalFor(2 * SECOND, [tenant, key], 3_000)).toBeUndefined()
    expect(budgets.refusalFor(0, [tenant, key], 10_001)).toMatchObject({ retryAfterUs: undefined })
  })

  it('counts concurrency and guesses when the next place comes free', () => {
    const budgets = new Budgets()
    const narrow = scope('tenant', { concurrencyMax: 2 })
    const first = budgets.reserve(0, [narrow], 1)
    budgets.settle(4 * SECOND, first, 1)
    const held = [budgets.reserve(4 * SECOND, [narrow], 1), budgets.reserve(4 * SECOND, [narrow], 1)]
    const refusal = budgets.refusalFor(4 * SECOND, [narrow], 1)
    expect(refusal).toMatchObject({ code: 'concurrency-limit', retryAfterUs: 2 * SECOND })
    budgets.refund(5 * SECOND, held[0] as Reservation)
    expect(budgets.refusalFor(5 * SECOND, [narrow], 1)).toBeUndefined()
  })

  it('keeps quotas beside rates', () => {
    const budgets = new Budgets()
    const capped = scope('tenant', {}, { quotas: [{ period: 'day', tokensMax: 100 }] })
    budgets.settle(0, budgets.reserve(0, [capped], 80), 60)
    expect(budgets.refusalFor(0, [capped], 50)).toMatchObject({
      code: 'quota-exhausted',
      retryAfterUs: 86_400 * SECOND,
    })
    expect(budgets.refusalFor(0, [capped], 40)).toBeUndefined()
    budgets.restoreQuota(0, capped, { period: 'day', tokens: 100 })
    expect(budgets.refusalFor(0, [capped], 1)).toBeDefined()
  })

  it('takes changed terms while tickets are held', () => {
    const budgets = new Budgets()
    const held = budgets.reserve(0, [tenant], 9_000)
    const raised = { ...tenant, allowance: { tokens: { perMinute: 60_000, burst: 50_000 } } }
    expect(budgets.refusalFor(0, [raised], 2_000)).toBeDefined()
    budgets.settle(0, held, 0)
    expect(budgets.refusalFor(0, [raised], 10_000)).toBeUndefined()
    expect(budgets.view(0, [raised]).requests).toBeUndefined()
  })

  it('counts what is in flight in scopes without bounds, however often they were forgotten', () => {
    const budgets = new Budgets()
    const scopes = Array.from({ length: 50 }, (_, i) => scope('tenant', {}, { id: `t${i}` }))
    for (let round = 0; round < 4; round++) {
      for (const [i, one] of scopes.entries()) {
        const held = budgets.reserve(round * SECOND + i, [one], 1_000)
        expect(budgets.scopeViews(round * SECOND + i, [one])[0]?.view.inFlight).toBe(1)
        budgets.settle(round * SECOND + i, held, 500)
      }
      expect(budgets.scopeCount).toBeLessThan(20)
    }
    // Terms that came meanwhile are kept.
    const bounded = scope('tenant', { concurrencyMax: 1 }, { id: 't0' })
    budgets.reserve(9 * SECOND, [bounded], 1)
    expect(budgets.refusalFor(9 * SECOND, [bounded], 1)?.code).toBe('concurrency-limit')
  })

  it('forgets who is idle and full again, and nobody else', () => {
    const budgets = new Budgets()
    const busy = scope('tenant', tenant.allowance, { id: 'busy' })
    const held = budgets.reserve(0, [busy], 100)
    for (let i = 0; i < 2_000; i++) {
      const now = i * SECOND
      const passing = scope('tenant', tenant.allowance, { id: `t${i}` })
      budgets.settle(now, budgets.reserve(now, [passing], 10), 10)
    }
    expect(budgets.scopeCount).toBeLessThan(20)
    budgets.settle(2_000 * SECOND, held, 100)
    expect(() => budgets.settle(2_000 * SECOND, held, 100)).toThrow('settled once')
  })

  it('is all or nothing: what is refused has consumed nothing anywhere', () => {
    const command = fc.record({
      waitUs: fc.nat(2_000_000),
      tokens: fc.integer({ min: 1, max: 6_000 }),
      usedRatio: fc.double({ min: 0, max: 1, noNaN: true }),
      isRun: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(command, { maxLength: 80 }), (script) => {
        const budgets = new Budgets()
        const scopes = [tenant, key]
        const held: Reservation[] = []
        let now = 0
        for (const { waitUs, tokens, usedRatio, isRun } of script) {
          now += waitUs
          const before = budgets.view(now, scopes)
          const isRefused = budgets.refusalFor(now, scopes, tokens) !== undefined
          expect(budgets.view(now, scopes)).toEqual(before)
          if (!isRefused) held.push(budgets.reserve(now, scopes, tokens))
          const taken = isRefused ? 0 : tokens
          expect(budgets.view(now, scopes).tokens?.remaining).toBe((before.tokens?.remaining ?? 0) - taken)
          const done = held.length > 2 ? held.shift() : undefined
          if (done === undefined) continue
          if (isRun) budgets.settle(now, done, Math.floor(done.tokens * usedRatio))
          else budgets.refund(now, done)
        }
        for (const reservation of held) budgets.refund(now, reservation)
        const end = budgets.view(now + 3_600 * SECOND, scopes)
        expect([end.requests?.resetUs, end.tokens?.resetUs]).toEqual([0, 0])
      }),
    )
  })
})
