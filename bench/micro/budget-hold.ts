/**
 * What do budgets of money cost a request?
 *
 * Asks, reserves and settles over four scopes (org, tenant, key, model), first without budgets of money, then with one
 * each, then with a month in money and tokens and 24 rolling hours each. Also a delta that draws on.
 *
 *   node bench/micro/budget-hold.ts [rounds]
 */
import type { SpendLimit } from '../../src/domain/tenant.ts'
import { Budgets } from '../../src/policy/budgets/budgets.ts'
import type { Scope } from '../../src/policy/budgets/scope-budget.ts'

const ROUNDS = Number(process.argv[2] ?? 5)
const REQUESTS = 200_000
const START = 1_780_000_000_000_000

const limit = (over: Partial<SpendLimit>): SpendLimit => ({
  period: 'month',
  isHard: true,
  marks: [0.5, 0.8, 1],
  ...over,
})
const MAX = 4e15
const kinds: ReadonlyArray<readonly [string, readonly SpendLimit[]]> = [
  ['rates only', []],
  ['a month of money', [limit({ nanoMax: MAX })]],
  ['a month and 24 hours', [limit({ nanoMax: MAX, tokensMax: MAX }), limit({ period: { hours: 24 }, nanoMax: MAX })]],
]

const scopesOf = (quotas: readonly SpendLimit[]): Scope[] =>
  (['org', 'tenant', 'key', 'model'] as const).map((noun) => ({
    id: noun,
    noun,
    allowance: { requests: { perMinute: 1e9, burst: 1e8 }, tokens: { perMinute: 1e11, burst: 1e8 } },
    ...(quotas.length > 0 && { quotas, account: `${noun}:x` }),
  }))

for (const [name, quotas] of kinds) {
  const budgets = new Budgets()
  const scopes = scopesOf(quotas)
  const spend = { tokens: 1_200, nano: 340_000 }
  const used = { tokens: 900, nano: 250_000 }
  let best = Number.POSITIVE_INFINITY
  let bestDraw = Number.POSITIVE_INFINITY
  let now = START
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now()
    for (let i = 0; i < REQUESTS; i++) {
      now += 1_000
      if (budgets.refusalFor(now, scopes, 1_200, spend) !== undefined) throw new Error('the bench is refused')
      budgets.settle(now, budgets.reserve(now, scopes, 1_200, spend), 900, used)
    }
    best = Math.min(best, ((performance.now() - began) * 1_000) / REQUESTS)
    const held = budgets.reserve(now, scopes, 1_200, spend)
    const drawBegan = performance.now()
    for (let i = 1; i <= REQUESTS; i++) budgets.drawOn(now, held, { tokens: 1_200 + i, nano: 340_000 + i * 300 })
    bestDraw = Math.min(bestDraw, ((performance.now() - drawBegan) * 1_000) / REQUESTS)
    budgets.settle(now, held, 900, used)
  }
  console.log(
    `${name}: ask, reserve and settle ${best.toFixed(2)} µs, a delta ${bestDraw.toFixed(2)} µs (best of ${ROUNDS})`,
  )
}
