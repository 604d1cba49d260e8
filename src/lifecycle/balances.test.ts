import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import { NO_COST, type Settlement } from '../domain/ledger.ts'
import { Budgets } from '../policy/budgets/budgets.ts'
import { OWN_PARTS, type Scope } from '../policy/budgets/scope-budget.ts'
import { MemoryLedgerStore } from '../store/memory-ledger-store.ts'
import { BALANCES_DEFAULTS, Balances } from './balances.ts'

const HOUR_MS = 3_600_000
const NOW = 40 * 24 * HOUR_MS * 1_000

const lineOf = (ticketId: string, priceNano: number, over: Partial<Settlement> = {}): Settlement => ({
  ...NO_COST,
  ticketId,
  atMs: NOW / 1_000,
  orgId: 'o',
  tenantId: 't',
  keyId: 'k',
  endUser: '',
  model: 'm',
  releaseId: 'm@1',
  outcome: 'completed',
  inputTokens: 10,
  cachedTokens: 0,
  outputTokens: 5,
  priceNano,
  priceVersion: 'v1',
  ...over,
})

const scopeOf = (hours?: number): Scope => ({
  id: 't',
  noun: 'tenant',
  allowance: {},
  quotas: [{ period: hours === undefined ? 'month' : { hours }, nanoMax: 100, isHard: true, marks: [] }],
  account: 'tenant:t',
})

function setUp(over: { isShared?: boolean; isStrict?: boolean; fails?: () => boolean } = {}) {
  const clock = new VirtualClock(NOW)
  const store = new MemoryLedgerStore()
  const complaints: string[] = []
  let asked = 0
  const guarded = <T>(read: () => Promise<T>): Promise<T> => {
    asked++
    return over.fails?.() === true ? Promise.reject(new Error('The database is away.')) : read()
  }
  const balances = new Balances({
    clock,
    store: {
      balances: (...args) => guarded(() => store.balances(...args)),
      hourlyBalances: (...args) => guarded(() => store.hourlyBalances(...args)),
    },
    between: (read) => read(),
    isShared: over.isShared ?? false,
    isStrict: over.isStrict ?? true,
    complain: (problem) => complaints.push(problem),
  })
  const budgets = new Budgets({ ...OWN_PARTS, ledger: balances })
  const used = (scope: Scope): number | undefined =>
    budgets.scopeViews(clock.now(), [scope])[0]?.view.quotas[0]?.used.nano
  return { clock, store, balances, budgets, complaints, used, askedCount: () => asked }
}

describe('balances', () => {
  it('are those of the ledger before the start is over, for a month and for the last hours', async () => {
    const { store, balances, budgets, used, askedCount } = setUp()
    const [month, hours] = [scopeOf(), { ...scopeOf(2), id: 'u' }]
    await store.write([
      lineOf('a', 30),
      lineOf('b', 20, { atMs: NOW / 1_000 - 5 * HOUR_MS }),
      lineOf('lost', 0, { outcome: 'failed' }),
      lineOf('old', 40, { atMs: NOW / 1_000 - 30 * 24 * HOUR_MS }),
    ])
    budgets.prepare(NOW, [month, hours])
    expect(budgets.refusalFor(NOW, [month], 0)).toMatchObject({ code: 'limits-unknown' })
    await balances.start(budgets)
    expect([used(month), used(hours)]).toEqual([50, 30])
    const views = budgets.scopeViews(NOW, [month])
    expect(views[0]?.view.quotas[0]?.used.tokens).toBe(30)
    expect(askedCount()).toBe(2)
  })

  it('are asked for lazily, and whoever waits is told', async () => {
    const { store, balances, budgets } = setUp()
    await balances.start(budgets)
    await store.write([lineOf('a', 99)])
    const scopes = [scopeOf()]
    expect(budgets.refusalFor(NOW, scopes, 0)).toMatchObject({ code: 'limits-unknown' })
    expect(await balances.fetch(budgets.askForMore(NOW, scopes, 0))).toBe(true)
    expect(budgets.refusalFor(NOW, scopes, 0, { tokens: 0, nano: 1 })).toBeUndefined()
    expect(budgets.refusalFor(NOW, scopes, 0, { tokens: 0, nano: 2 })).toMatchObject({ code: 'budget-exhausted' })
  })

  it('are asked for again until the database answers, and one complaint is enough', async () => {
    let isAway = true
    const { clock, balances, budgets, complaints, askedCount } = setUp({ fails: () => isAway })
    const scopes = [scopeOf()]
    budgets.prepare(NOW, scopes)
    await balances.start(budgets)
    // Nobody waits for a database that is known to be away.
    expect(await balances.fetch(budgets.askForMore(NOW, scopes, 0))).toBe(false)
    await clock.run(NOW + 3 * BALANCES_DEFAULTS.retryUs)
    expect(complaints).toHaveLength(1)
    expect(askedCount()).toBeGreaterThanOrEqual(3)
    expect(budgets.refusalFor(clock.now(), scopes, 0)).toMatchObject({ code: 'limits-unknown', blame: 'platform' })
    isAway = false
    await clock.run(NOW + 5 * BALANCES_DEFAULTS.retryUs)
    expect(budgets.refusalFor(clock.now(), scopes, 0)).toBeUndefined()
    balances.close()
  })

  it('count from nothing where the operator lets what is not known through', () => {
    const { budgets } = setUp({ isStrict: false })
    expect(budgets.refusalFor(NOW, [scopeOf()], 0, { tokens: 1, nano: 100 })).toBeUndefined()
    expect(budgets.refusalFor(NOW, [scopeOf()], 0, { tokens: 1, nano: 101 })).toBeDefined()
  })

  it('learn what other gateways used, and count nothing of their own twice', async () => {
    const { clock, store, balances, budgets, used } = setUp({ isShared: true })
    const scope = scopeOf()
    budgets.prepare(NOW, [scope])
    await balances.start(budgets)
    const spend = { tokens: 15, nano: 10 }
    budgets.settle(NOW, budgets.reserve(NOW, [scope], 0, spend), 0, spend)
    await store.write([lineOf('theirs', 40)])
    expect(used(scope)).toBe(10)
    await clock.run(NOW + BALANCES_DEFAULTS.refreshUs + 1)
    expect(used(scope)).toBe(50)
    const own = lineOf('own', 10)
    await store.write([own])
    balances.written([own])
    await clock.run(NOW + 2 * BALANCES_DEFAULTS.refreshUs + 2)
    expect(used(scope)).toBe(50)
    balances.close()
  })
})
