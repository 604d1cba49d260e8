import { assert } from '../../base/assert.ts'
import { type Instant, US_PER_MS } from '../../base/clock.ts'
import { NANO_PER_USD } from '../../domain/ledger.ts'
import type { Refusal, RefusalCode } from '../../domain/outcome.ts'
import { spanName } from '../../domain/spend-key.ts'
import type { Quota, QuotaHold, Spend } from './quota.ts'
import {
  type Asking,
  type BoundKind,
  type BudgetParts,
  OWN_PARTS,
  type Scope,
  ScopeBudget,
  type ScopeView,
  type Shortfall,
} from './scope-budget.ts'
import type { BucketView } from './token-bucket.ts'

/**
 * May this tenant, with this key, spend this now?
 *
 * Every scope that a request belongs to (its org, its tenant, its key) has its own bounds: requests a minute, tokens a minute,
 * requests at once, and budgets of money and tokens for a period (`quota.ts`). All bounds of all scopes are asked first and spent from together:
 * a request that is refused anywhere has consumed nothing anywhere. Tokens are reserved as predicted (prompt + P90 of
 * the output) and settled as measured; the difference goes back or is taken on top.
 *
 * A refusal names the scope and the bound that keeps the request out for longest, so that when the client comes back
 * at the time it was told, the other bounds let it through too. For buckets and quotas that instant is exact as long
 * as nobody else spends from them; for concurrency it is the mean time until the next place comes free.
 *
 * A scope whose buckets are full again and which has nothing in flight is forgotten (a new one starts full, so nothing
 * is lost): a hand walks round the scopes, two steps for each newcomer, so memory follows those who are active.
 *
 * Laws: L4, refunds ≤ reservations, and overdraft only by what usage exceeded its reservation, at most one burst.
 * Buckets are this process' own, or slices of buckets that several gateways share (`policy/sharing/leased-bucket.ts`).
 *
 * Example: tenant 600 requests and 100,000 tokens a minute, key 60 requests a minute. A request of 2,000 tokens takes
 * 1 + 2,000 from the tenant and 1 from the key; it used 1,200, so settle gives 800 back to the tenant.
 */
export const BUDGET_DEFAULTS = {
  /** Scopes looked at for each new one, to forget the idle: two, so that the hand outruns the newcomers. */
  sweepCount: 2,
  /** Scopes of end users beyond which one that has nothing in flight is not kept: about a hundred megabytes. */
  usersMax: 100_000,
}

const NO_SPEND: Spend = Object.freeze({ tokens: 0, nano: 0 })

/** Held from admission to settlement; settled exactly once. */
export interface Reservation {
  readonly at: Instant
  readonly tokens: number
  /** What is held of budgets, in money and tokens; grows when the answer runs past it. */
  spend: Spend
  /** Whether a scope has such a budget. */
  readonly isMetered: boolean
  readonly holds: readonly {
    readonly budget: ScopeBudget
    readonly quotaHolds: readonly QuotaHold[]
  }[]
  isOpen: boolean
}

/** The tightest bucket over the scopes asked: what the `x-ratelimit-*` headers say. */
export interface RateLimitView {
  readonly requests: BucketView | undefined
  readonly tokens: BucketView | undefined
}

/** One scope, and what it has left. */
export interface ScopeStanding {
  readonly scope: Scope
  readonly view: ScopeView
}

export class Budgets {
  readonly #scopes = new Map<string, ScopeBudget>()
  /** The same by the scope itself, which callers keep: asked six times for every request. */
  readonly #known = new WeakMap<Scope, ScopeBudget>()
  readonly #parts: BudgetParts
  /** Scopes with budgets by their names in the ledger. */
  readonly #byAccount = new Map<string, ScopeBudget>()
  readonly #usersMax: number
  #userCount = 0
  #hand: MapIterator<[string, ScopeBudget]> = this.#scopes.entries()

  constructor(parts: BudgetParts = OWN_PARTS, usersMax = BUDGET_DEFAULTS.usersMax) {
    this.#parts = parts
    this.#usersMax = usersMax
  }

  get scopeCount(): number {
    return this.#scopes.size
  }

  /** Would it be let through? Changes nothing; undefined means yes. */
  refusalFor(now: Instant, scopes: readonly Scope[], tokens: number, spend = NO_SPEND): Refusal | undefined {
    let worst: Shortfall | undefined
    for (const scope of scopes) {
      const short = this.#budgetOf(now, scope).shortfall(now, scope, tokens, spend)
      if (short === undefined) continue
      if (worst === undefined || short.fitsAt === undefined) worst = short
      else if (worst.fitsAt !== undefined && short.fitsAt > worst.fitsAt) worst = short
    }
    return worst === undefined ? undefined : makeRefusal(now, worst, tokens, spend)
  }

  /** What asks the store of shared budgets for more, for a request that was refused here. */
  askForMore(now: Instant, scopes: readonly Scope[], tokens: number): readonly Asking[] {
    return scopes.flatMap((scope) => this.#budgetOf(now, scope).askForMore(now, tokens))
  }

  /**
   * The most tokens that these scopes' rates ever pay for at once: what is more can never fit. Budgets of a period are
   * not asked: what they hold is never made smaller, however unsure the size of a prompt is.
   */
  tokensMaxOf(scopes: readonly Scope[]): number {
    let tokensMax = Number.POSITIVE_INFINITY
    for (const { allowance } of scopes) tokensMax = Math.min(tokensMax, allowance.tokens?.burst ?? tokensMax)
    return tokensMax
  }

  /** Call only right after `refusalFor` said yes, in the same instant. */
  reserve(now: Instant, scopes: readonly Scope[], tokens: number, spend = NO_SPEND): Reservation {
    const holds: { budget: ScopeBudget; quotaHolds: readonly QuotaHold[] }[] = []
    let isMetered = false
    for (const scope of scopes) {
      const budget = this.#budgetOf(now, scope)
      const quotaHolds = budget.take(now, tokens, spend)
      if (quotaHolds.length > 0) isMetered = true
      holds.push({ budget, quotaHolds })
    }
    return { at: now, tokens, spend, isMetered, holds, isOpen: true }
  }

  /** The answer has used more than is held: holds what it used. False when a hard budget is empty by that. */
  drawOn(now: Instant, reservation: Reservation, used: Spend): boolean {
    const { spend, holds } = reservation
    const more = { tokens: Math.max(0, used.tokens - spend.tokens), nano: Math.max(0, used.nano - spend.nano) }
    if (more.tokens === 0 && more.nano === 0) return true
    reservation.spend = { tokens: spend.tokens + more.tokens, nano: spend.nano + more.nano }
    let isLeft = true
    for (const { quotaHolds } of holds) {
      for (const hold of quotaHolds) if (!hold.quota.drawOn(now, hold, more)) isLeft = false
    }
    return isLeft
  }

  /** It ran: what was used is charged, the rest goes back. */
  settle(now: Instant, reservation: Reservation, usedTokens: number, spend = NO_SPEND): void {
    this.#close(now, reservation, { tokens: usedTokens, spend, isRequestCounted: true })
  }

  /** It never ran (evicted, expired, cancelled in its lane): everything goes back, the request itself included. */
  refund(now: Instant, reservation: Reservation): void {
    this.#close(now, reservation, { tokens: 0, spend: NO_SPEND, isRequestCounted: false })
  }

  /** Makes these scopes' budgets before anybody asks, so that the ledger is asked for them. */
  prepare(now: Instant, scopes: readonly Scope[]): void {
    for (const scope of scopes) this.#budgetOf(now, scope)
  }

  /** Scopes in memory that have budgets of a period, and those. */
  *quotas(): IterableIterator<readonly [scope: ScopeBudget['scope'], quotas: readonly Quota[], account: string]> {
    for (const [account, budget] of this.#byAccount) yield [budget.scope, budget.quotas, account]
  }

  /** The ledger has this now of a scope, in that hour. */
  written(account: string, hour: number, spend: Spend): void {
    for (const quota of this.#byAccount.get(account)?.quotas ?? []) quota.written(hour, spend)
  }

  view(now: Instant, scopes: readonly Scope[]): RateLimitView {
    let requests: BucketView | undefined
    let tokens: BucketView | undefined
    for (const scope of scopes) {
      const budget = this.#budgetOf(now, scope)
      requests = tighter(requests, budget.requestsView(now))
      tokens = tighter(tokens, budget.tokensView(now))
    }
    return { requests, tokens }
  }

  /** Everything that these scopes have and have left, one by one. */
  scopeViews(now: Instant, scopes: readonly Scope[]): readonly ScopeStanding[] {
    return scopes.map((scope) => ({ scope, view: this.#budgetOf(now, scope).view(now) }))
  }

  #close(now: Instant, reservation: Reservation, used: Parameters<ScopeBudget['settle']>[2]): void {
    assert(reservation.isOpen, 'a reservation is settled once')
    reservation.isOpen = false
    for (const hold of reservation.holds) {
      hold.budget.settle(now, { at: reservation.at, tokens: reservation.tokens, quotaHolds: hold.quotaHolds }, used)
    }
  }

  #budgetOf(now: Instant, scope: Scope): ScopeBudget {
    const known = this.#known.get(scope)
    if (known !== undefined && !known.isForgotten) {
      known.adopt(now, scope)
      return known
    }
    const budget = this.#budgetByName(now, scope, known)
    this.#known.set(scope, budget)
    return budget
  }

  #budgetByName(now: Instant, scope: Scope, forgotten: ScopeBudget | undefined): ScopeBudget {
    const name = forgotten?.name ?? `${scope.noun}:${scope.id}`
    let budget = this.#scopes.get(name)
    if (budget === undefined) {
      this.#sweep(now)
      // Unbounded scopes are idle between any two requests: what was forgotten comes back as it was made.
      budget = forgotten?.isUnbounded(scope) === true ? forgotten : new ScopeBudget(now, scope, this.#parts)
      budget.isForgotten = false
      this.#scopes.set(name, budget)
      if (scope.noun === 'user') this.#userCount++
    } else {
      budget.adopt(now, scope)
    }
    if (scope.account !== undefined) this.#byAccount.set(scope.account, budget)
    return budget
  }

  #sweep(now: Instant): void {
    for (let i = 0; i < BUDGET_DEFAULTS.sweepCount; i++) {
      const next = this.#hand.next()
      if (next.done === true) {
        this.#hand = this.#scopes.entries()
        return
      }
      const [name, budget] = next.value
      const isUser = name.startsWith('user:')
      if (!budget.isIdle(now, isUser && this.#userCount > this.#usersMax)) continue
      budget.isForgotten = true
      this.#scopes.delete(name)
      if (isUser) this.#userCount--
      if (budget.account !== undefined) this.#byAccount.delete(budget.account)
    }
  }
}

const CODE_OF: Readonly<Record<BoundKind, RefusalCode>> = {
  'requests-per-minute': 'rate-limit-requests',
  'tokens-per-minute': 'rate-limit-tokens',
  concurrency: 'concurrency-limit',
  budget: 'budget-exhausted',
}

function makeRefusal(now: Instant, short: Shortfall, tokens: number, spend: Spend): Refusal {
  const { scope, bound, limit, fitsAt, quota } = short
  if (quota !== undefined) return outOfBudget(now, short, quota, spend)
  if (short.isUnknown === true && fitsAt !== undefined) {
    const because = `${scope.noun} ${scope.id} has strict limits, and the store in which gateways share them does not answer`
    return { code: 'limits-unknown', because, blame: 'platform', retryAfterUs: fitsAt - now }
  }
  const unit = bound === 'concurrency' ? 'at once' : bound.replaceAll('-', ' ')
  const never = fitsAt === undefined ? `; ${tokens} tokens can never fit` : ''
  return {
    code: CODE_OF[bound],
    because: `${scope.noun} ${scope.id} is over its limit of ${limit} ${unit}${never}`,
    blame: 'tenant',
    retryAfterUs: fitsAt === undefined ? undefined : fitsAt - now,
    detail: { scope: scope.noun, scope_id: scope.id, bound, limit, requested_tokens: tokens },
  }
}

function outOfBudget(now: Instant, { scope, fitsAt, isUnknown }: Shortfall, quota: Quota, spend: Spend): Refusal {
  const { noun, id } = scope
  const { limit, used, held, resetUs } = quota.view(now)
  const { nanoMax, tokensMax, period } = limit
  if (isUnknown === true) {
    const because = `it is not known yet what ${noun} ${id} has spent of its hard budget: the ledger does not answer`
    return { code: 'limits-unknown', because, blame: 'platform', retryAfterUs: (fitsAt ?? now) - now }
  }
  const isMoney = nanoMax !== undefined && used.nano + held.nano + spend.nano > nanoMax
  const [asked, whole] = isMoney
    ? [dollars(spend.nano), dollars(nanoMax)]
    : [`${spend.tokens} tokens`, `${tokensMax ?? 0} tokens`]
  const span = typeof period === 'object' ? `for ${period.hours} hours` : `for the ${period}`
  const resetsAt = new Date(Math.floor((now + resetUs) / US_PER_MS)).toISOString()
  const ends = typeof period === 'object' ? '' : `, and the ${period} ends at ${resetsAt.slice(0, 16)}Z`
  const because =
    fitsAt === undefined
      ? `it may need ${asked}, more than the whole budget of ${noun} ${id}, ${whole} ${span}`
      : `${noun} ${id} has too little left of its budget of ${whole} ${span}: it may need ${asked}${ends}`
  return {
    code: 'budget-exhausted',
    because,
    blame: 'tenant',
    retryAfterUs: fitsAt === undefined ? undefined : fitsAt - now,
    detail: {
      scope: noun,
      scope_id: id,
      bound: 'budget',
      period: spanName(period),
      unit: isMoney ? 'usd' : 'tokens',
      limit: isMoney ? nanoMax / NANO_PER_USD : (tokensMax ?? 0),
      used: isMoney ? used.nano / NANO_PER_USD : used.tokens,
      held: isMoney ? held.nano / NANO_PER_USD : held.tokens,
      requested: isMoney ? spend.nano / NANO_PER_USD : spend.tokens,
      resets_at: resetsAt,
    },
  }
}

/** Six digits behind the point are a millionth of a dollar, about one token. */
const dollars = (nano: number): string => `${(nano / NANO_PER_USD).toFixed(6).replace(/0{1,4}$/, '')} dollars`

function tighter(a: BucketView | undefined, b: BucketView | undefined): BucketView | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.remaining < a.remaining ? b : a
}
