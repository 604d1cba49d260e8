import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import type { Refusal, RefusalCode } from '../../domain/outcome.ts'
import type { QuotaHold, QuotaLimit } from './quota.ts'
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
 * requests at once, and quotas per calendar period. All bounds of all scopes are asked first and spent from together:
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
}

/** Held from admission to settlement; settled exactly once. */
export interface Reservation {
  readonly at: Instant
  readonly tokens: number
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
  #hand: MapIterator<[string, ScopeBudget]> = this.#scopes.entries()

  constructor(parts: BudgetParts = OWN_PARTS) {
    this.#parts = parts
  }

  get scopeCount(): number {
    return this.#scopes.size
  }

  /** Would it be let through? Changes nothing; undefined means yes. */
  refusalFor(now: Instant, scopes: readonly Scope[], tokens: number): Refusal | undefined {
    let worst: Shortfall | undefined
    for (const scope of scopes) {
      const short = this.#budgetOf(now, scope).shortfall(now, scope, tokens)
      if (short === undefined) continue
      if (worst === undefined || short.fitsAt === undefined) worst = short
      else if (worst.fitsAt !== undefined && short.fitsAt > worst.fitsAt) worst = short
    }
    return worst === undefined ? undefined : makeRefusal(now, worst, tokens)
  }

  /** What asks the store of shared budgets for more, for a request that was refused here. */
  askForMore(now: Instant, scopes: readonly Scope[], tokens: number): readonly Asking[] {
    return scopes.flatMap((scope) => this.#budgetOf(now, scope).askForMore(now, tokens))
  }

  /** The most tokens that these scopes ever pay for at once: what is more can never fit. */
  tokensMaxOf(scopes: readonly Scope[]): number {
    let tokensMax = Number.POSITIVE_INFINITY
    for (const { allowance, quotas = [] } of scopes) {
      tokensMax = Math.min(tokensMax, allowance.tokens?.burst ?? tokensMax)
      for (const quota of quotas) tokensMax = Math.min(tokensMax, quota.tokensMax)
    }
    return tokensMax
  }

  /** Call only right after `refusalFor` said yes, in the same instant. */
  reserve(now: Instant, scopes: readonly Scope[], tokens: number): Reservation {
    const holds: { budget: ScopeBudget; quotaHolds: readonly QuotaHold[] }[] = []
    for (const scope of scopes) {
      const budget = this.#budgetOf(now, scope)
      holds.push({ budget, quotaHolds: budget.take(now, tokens) })
    }
    return { at: now, tokens, holds, isOpen: true }
  }

  /** It ran: what was used is charged, the rest goes back. */
  settle(now: Instant, reservation: Reservation, usedTokens: number): void {
    this.#close(now, reservation, { tokens: usedTokens, isRequestCounted: true })
  }

  /** It never ran (evicted, expired, cancelled in its lane): everything goes back, the request itself included. */
  refund(now: Instant, reservation: Reservation): void {
    this.#close(now, reservation, { tokens: 0, isRequestCounted: false })
  }

  restoreQuota(
    now: Instant,
    scope: Scope,
    used: { readonly period: QuotaLimit['period']; readonly tokens: number },
  ): void {
    this.#budgetOf(now, scope).restoreQuota(now, used.period, used.tokens)
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

  #close(now: Instant, reservation: Reservation, used: { tokens: number; isRequestCounted: boolean }): void {
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
    } else {
      budget.adopt(now, scope)
    }
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
      if (!budget.isIdle(now)) continue
      budget.isForgotten = true
      this.#scopes.delete(name)
    }
  }
}

const CODE_OF: Readonly<Record<BoundKind, RefusalCode>> = {
  'requests-per-minute': 'rate-limit-requests',
  'tokens-per-minute': 'rate-limit-tokens',
  concurrency: 'concurrency-limit',
  quota: 'quota-exhausted',
}

function makeRefusal(now: Instant, short: Shortfall, tokens: number): Refusal {
  const { scope, bound, limit, fitsAt } = short
  if (short.isUnknown === true && fitsAt !== undefined) {
    const because = `${scope.noun} ${scope.id} has strict limits, and the store in which gateways share them does not answer`
    return { code: 'limits-unknown', because, blame: 'platform', retryAfterUs: fitsAt - now }
  }
  const unit =
    bound === 'quota' ? 'tokens in this period' : bound === 'concurrency' ? 'at once' : bound.replaceAll('-', ' ')
  const never = fitsAt === undefined ? `; ${tokens} tokens can never fit` : ''
  return {
    code: CODE_OF[bound],
    because: `${scope.noun} ${scope.id} is over its limit of ${limit} ${unit}${never}`,
    blame: 'tenant',
    retryAfterUs: fitsAt === undefined ? undefined : fitsAt - now,
    detail: { scope: scope.noun, scope_id: scope.id, bound, limit, requested_tokens: tokens },
  }
}

function tighter(a: BucketView | undefined, b: BucketView | undefined): BucketView | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.remaining < a.remaining ? b : a
}
