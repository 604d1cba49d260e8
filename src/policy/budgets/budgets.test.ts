import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Allowance } from '../../domain/tenant.ts'
import { Budgets, type Reservation } from './budgets.ts'
import type { Quota, Spend } from './quota.ts'
import { OWN_PARTS, type Scope } from './scope-budget.ts'

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
    // What a budget of a period holds is never made smaller, so no size in doubt is cut to it.
    const quotas = [{ period: 'day' as const, tokensMax: 7_000, isHard: true, marks: [] }]
    expect(budgets.tokensMaxOf([tenant, { ...key, quotas }])).toBe(10_000)
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
    const capped = scope('tenant', {}, { quotas: [{ period: 'day', tokensMax: 100, isHard: true, marks: [] }] })
    const tokens = (count: number): Spend => ({ tokens: count, nano: 0 })
    budgets.settle(0, budgets.reserve(0, [capped], 80, tokens(80)), 60, tokens(60))
    expect(budgets.refusalFor(0, [capped], 50, tokens(50))).toMatchObject({
      code: 'budget-exhausted',
      retryAfterUs: 86_400 * SECOND,
      detail: { scope: 'tenant', period: 'day', limit: 100, used: 60, resets_at: '1970-01-02T00:00:00.000Z' },
    })
    expect(budgets.refusalFor(0, [capped], 40, tokens(40))).toBeUndefined()
  })

  const DOLLAR = 1_000_000_000
  const rich = (noun: Scope['noun'], id: string, usd: number): Scope => ({
    id,
    noun,
    allowance: {},
    quotas: [{ period: 'month', nanoMax: usd * DOLLAR, isHard: true, marks: [] }],
    account: `${noun}:${id}`,
  })

  it('lets exactly ten of a thousand through a budget for ten, over all scopes at once', () => {
    const budgets = new Budgets()
    const scopes = [rich('org', 'o', 100), rich('tenant', 't', 10), rich('key', 't/k', 50), rich('model', 't/m', 20)]
    const spend = { tokens: 100, nano: DOLLAR }
    const held: Reservation[] = []
    for (let i = 0; i < 1_000; i++)
      if (budgets.refusalFor(0, scopes, 0, spend) === undefined) held.push(budgets.reserve(0, scopes, 0, spend))
    expect(held).toHaveLength(10)
    // The refused ones took nothing, anywhere.
    const views = (): number[] => budgets.scopeViews(0, scopes).map(({ view }) => view.quotas[0]?.held.nano ?? 0)
    expect(views()).toEqual([10, 10, 10, 10].map((usd) => usd * DOLLAR))
    for (const one of held) budgets.settle(0, one, 0, { tokens: 50, nano: DOLLAR / 2 })
    expect(views()).toEqual([0, 0, 0, 0])
    expect(budgets.refusalFor(0, scopes, 0, { tokens: 1, nano: 5 * DOLLAR })).toBeUndefined()
    expect(budgets.refusalFor(0, scopes, 0, { tokens: 1, nano: 5 * DOLLAR + 1 })).toMatchObject({
      code: 'budget-exhausted',
      blame: 'tenant',
      because:
        'tenant t has too little left of its budget of 10.00 dollars for the month: it may need 5.00 dollars, and the month ends at 1970-02-01T00:00Z',
      detail: { scope: 'tenant', scope_id: 't', unit: 'usd', limit: 10, used: 5 },
    })
  })

  it('refuses what is dearer than the whole budget, and never makes it smaller', () => {
    const budgets = new Budgets()
    const scopes = [rich('tenant', 't', 1)]
    const refusal = budgets.refusalFor(0, scopes, 0, { tokens: 1, nano: 2 * DOLLAR })
    expect(refusal).toMatchObject({ code: 'budget-exhausted', retryAfterUs: undefined })
  })

  it('draws on beyond what is held, and says when a hard budget is empty by that', () => {
    const budgets = new Budgets()
    const soft: Scope = { ...rich('org', 'o', 1), quotas: [{ period: 'day', tokensMax: 5, isHard: false, marks: [] }] }
    const scopes = [soft, rich('tenant', 't', 2)]
    const held = budgets.reserve(0, scopes, 0, { tokens: 10, nano: DOLLAR })
    expect(held.isMetered).toBe(true)
    expect(budgets.drawOn(0, held, { tokens: 9, nano: DOLLAR / 2 })).toBe(true)
    expect(held.spend).toEqual({ tokens: 10, nano: DOLLAR })
    expect(budgets.drawOn(0, held, { tokens: 20, nano: 2 * DOLLAR })).toBe(true)
    expect(budgets.drawOn(0, held, { tokens: 21, nano: 2 * DOLLAR + 1 })).toBe(false)
    budgets.settle(0, held, 0, { tokens: 21, nano: 2 * DOLLAR + 1 })
    expect(budgets.refusalFor(0, scopes, 0, { tokens: 0, nano: 0 })).toBeDefined()
  })

  it('refuses hard budgets that are not known where the ledger is strict, and asks for them once', () => {
    const asked: Quota[] = []
    const ledger = { isStrict: true, ask: (_account: string, quota: Quota) => void asked.push(quota) }
    const budgets = new Budgets({ ...OWN_PARTS, ledger })
    const scopes = [rich('tenant', 't', 2)]
    const spend = { tokens: 1, nano: 1 }
    expect(budgets.refusalFor(0, scopes, 0, spend)).toMatchObject({ code: 'limits-unknown', blame: 'platform' })
    expect(budgets.askForMore(0, scopes, 0)).toEqual(asked)
    expect(asked).toHaveLength(1)
    asked[0]?.restore(0, 0, [{ hour: 0, tokens: 9, nano: 2 * DOLLAR }])
    expect(budgets.refusalFor(0, scopes, 0, spend)).toMatchObject({ code: 'budget-exhausted' })
  })

  it('bounds the end users whom it remembers', () => {
    const usersMax = 100
    const budgets = new Budgets(OWN_PARTS, usersMax)
    for (let i = 0; i < 2 * usersMax; i++) {
      const scopes = [rich('user', `t/${i}`, 1)]
      budgets.settle(0, budgets.reserve(0, scopes, 0, { tokens: 1, nano: 1 }), 0, { tokens: 1, nano: 1 })
    }
    expect(budgets.scopeCount).toBeLessThanOrEqual(usersMax + 2)
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
