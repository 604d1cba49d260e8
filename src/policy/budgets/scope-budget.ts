import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'
import { spendKeyOf } from '../../domain/spend-key.ts'
import type { Allowance, SpendLimit } from '../../domain/tenant.ts'
import { type MakePermits, makeOwnPermits, type Permits } from './permits.ts'
import { Quota, type QuotaHold, type QuotaView, type Spend } from './quota.ts'
import { type Bucket, type BucketView, type MakeBucket, makeOwnBucket } from './token-bucket.ts'

/**
 * May this one scope (an org, a tenant or a key) spend this now? Everything that bounds it in one place: requests a minute,
 * tokens a minute, requests at once, money and tokens of a period. `budgets.ts` asks several scopes and spends from all of
 * them or from none; the file header there tells the whole.
 */

/** Which of a scope's bounds a request ran into: metric label, error code and documentation word. */
export type BoundKind = 'requests-per-minute' | 'tokens-per-minute' | 'concurrency' | 'budget'

export interface Scope {
  readonly id: string
  readonly noun: 'tenant' | 'key' | 'org' | 'model' | 'user'
  readonly allowance: Allowance
  readonly quotas?: readonly SpendLimit[]
  /** The scope's name in the ledger; comes with `quotas`. */
  readonly account?: string
  /** Refused where the store of shared limits has forgotten this gateway. */
  readonly isStrict?: boolean
}

export interface Shortfall {
  readonly scope: Scope
  readonly bound: BoundKind
  readonly limit: number
  /** The first instant at which this bound would let it through; undefined when it never will. */
  readonly fitsAt: Instant | undefined
  /** It might fit, but nobody can tell: the scope is strict and its limits are not known here. */
  readonly isUnknown?: boolean
  /** With the bound `budget`: which one. */
  readonly quota?: Quota
}

export interface ScopeView {
  readonly requests: BucketView | undefined
  readonly tokens: BucketView | undefined
  readonly inFlight: number
  readonly quotas: readonly QuotaView[]
}

/** Where a budget's buckets and permits come from: this process alone, or what it shares with others. */
export interface BudgetParts {
  readonly makeBucket: MakeBucket
  readonly makePermits: MakePermits
  /** Absent: what a scope used is known to be nothing when it is first seen. */
  readonly ledger?: QuotaLedger
  readonly onMark?: (mark: PassedMark) => void
}

/** Where what a scope used is written down. */
export interface QuotaLedger {
  /** Hard budgets refuse while it is not known what was used; else they count from nothing. */
  readonly isStrict: boolean
  /** A quota is new here: what was used of it is told later, by `Quota.restore`. */
  ask(account: string, quota: Quota): void
}

/** A budget has come to one of its marks. */
export interface PassedMark {
  readonly scope: Pick<Scope, 'noun' | 'id'>
  readonly mark: number
  readonly quota: Quota
}

export const OWN_PARTS: BudgetParts = { makeBucket: makeOwnBucket, makePermits: makeOwnPermits }

/** Something that waits for a call of the store of shared budgets. */
export type Asking = Pick<Bucket, 'isAsking'>

/** A guess until the first request ends: how long one holds its place. */
const HOLD_US_PRIOR = 1_000_000
/** Memory of how long requests hold their place: a minute, as budgets are per minute. */
const HOLD_MEMORY_US = 60_000_000

/** When to come back while limits are not known: the store may be heard again by then. */
const UNKNOWN_RETRY_US = 1_000_000

/** Quotas of a scope that the ledger knows are forgotten when nobody asked for this long; the ledger gives them back. */
const QUOTA_IDLE_US = 600_000_000

const NO_HOLDS: readonly QuotaHold[] = Object.freeze([])

export class ScopeBudget {
  /** Idle, and dropped for that: whoever still knows it must ask for a new one. */
  isForgotten = false
  #allowance: Allowance
  #quotaLimits: readonly SpendLimit[]
  readonly #makeBucket: MakeBucket
  readonly #makePermits: MakePermits
  readonly #parts: BudgetParts
  readonly scope: Pick<Scope, 'noun' | 'id'>
  readonly name: string
  /** The scope's name in the ledger; undefined where it has no quotas. */
  account: string | undefined
  #askedAt: Instant
  #requests: Bucket | undefined
  #tokens: Bucket | undefined
  #permits: Permits | undefined
  #quotas: readonly Quota[]
  #inFlight = 0
  readonly #holdUs = new Ewma(HOLD_MEMORY_US)

  constructor(now: Instant, scope: Scope, parts: BudgetParts = OWN_PARTS) {
    this.#parts = parts
    this.scope = { noun: scope.noun, id: scope.id }
    this.#makeBucket = parts.makeBucket
    this.#makePermits = parts.makePermits
    this.#askedAt = now
    this.account = scope.account
    this.name = `${scope.noun}:${scope.id}`
    this.#allowance = scope.allowance
    this.#quotaLimits = scope.quotas ?? []
    this.#requests = this.#retuned(now, 'requests', undefined, scope.allowance)
    this.#tokens = this.#retuned(now, 'tokens', undefined, scope.allowance)
    this.#permits = this.#permitsFor(now, scope.allowance)
    this.#quotas = this.#quotaLimits.map((limit) => this.#makeQuota(now, limit))
  }

  /** Nothing bounds the scope, now or by these terms: it is counted, and refuses nothing. */
  isUnbounded({ allowance, quotas }: Scope): boolean {
    const { requests, tokens, concurrencyMax } = this.#allowance
    const isBounded = (requests ?? tokens ?? concurrencyMax) !== undefined || this.#quotas.length > 0
    return !isBounded && allowance === this.#allowance && (quotas?.length ?? 0) === 0
  }

  /** Takes over changed terms; what was spent stays spent. */
  adopt(now: Instant, scope: Scope): void {
    const quotas = scope.quotas ?? []
    if (scope.allowance !== this.#allowance) {
      this.#requests = this.#retuned(now, 'requests', this.#requests, scope.allowance)
      this.#tokens = this.#retuned(now, 'tokens', this.#tokens, scope.allowance)
      this.#permits = this.#permitsFor(now, scope.allowance)
      this.#allowance = scope.allowance
    }
    if (quotas === this.#quotaLimits || (quotas.length === 0 && this.#quotas.length === 0)) return
    this.#quotas = quotas.map((limit) => {
      const old = this.#quotas.find((quota) => spendKeyOf(quota.limit) === spendKeyOf(limit))
      old?.retune(now, limit)
      return old ?? this.#makeQuota(now, limit)
    })
    this.#quotaLimits = quotas
    this.account = scope.account
  }

  /** The bound that keeps this out for longest, or undefined when all let it through. */
  shortfall(now: Instant, scope: Scope, tokens: number, spend: Spend): Shortfall | undefined {
    this.#askedAt = now
    const { requests, tokens: tokenLimit, concurrencyMax } = this.#allowance
    let worst = scope.isStrict === true ? this.#unknown(now, scope) : undefined
    const consider = (bound: BoundKind, limit: number, fitsAt: Instant | undefined): void => {
      if (fitsAt === now) return
      if (worst === undefined || isLater(fitsAt, worst.fitsAt)) worst = { scope, bound, limit, fitsAt }
    }
    if (this.#requests !== undefined && requests !== undefined) {
      consider('requests-per-minute', requests.perMinute, this.#requests.fitsAt(now, 1))
    }
    if (this.#tokens !== undefined && tokenLimit !== undefined) {
      consider('tokens-per-minute', tokenLimit.perMinute, this.#tokens.fitsAt(now, tokens))
    }
    if (this.#permits !== undefined && concurrencyMax !== undefined && this.#inFlight >= this.#permits.allowed(now)) {
      consider('concurrency', concurrencyMax, concurrencyMax === 0 ? undefined : now + this.#nextPlaceUs())
    }
    if (this.#quotas.length === 0) return worst
    const short = this.#quotaShortfall(now, scope, spend)
    return short === undefined || (worst !== undefined && !isLater(short.fitsAt, worst.fitsAt)) ? worst : short
  }

  #quotaShortfall(now: Instant, scope: Scope, spend: Spend): Shortfall | undefined {
    let worst: Shortfall | undefined
    for (const quota of this.#quotas) {
      if (quota.limit.isHard && !quota.isKnown && this.#parts.ledger?.isStrict === true) {
        return { scope, bound: 'budget', limit: 0, fitsAt: now + UNKNOWN_RETRY_US, isUnknown: true, quota }
      }
      const fitsAt = quota.fitsAt(now, spend, this.#nextPlaceUs())
      if (fitsAt === now || (worst !== undefined && !isLater(fitsAt, worst.fitsAt))) continue
      worst = { scope, bound: 'budget', limit: quota.limit.nanoMax ?? quota.limit.tokensMax ?? 0, fitsAt, quota }
    }
    return worst
  }

  /** What asks the store of shared budgets for a request that does not fit here; empty where asking cannot help. */
  askForMore(now: Instant, tokens: number): readonly Asking[] {
    const asked: Asking[] = []
    if (this.#requests?.askFor?.(now, 1) === true) asked.push(this.#requests)
    if (this.#tokens?.askFor?.(now, tokens) === true) asked.push(this.#tokens)
    const permits = this.#permits
    if (permits !== undefined && this.#inFlight >= permits.allowed(now) && permits.askFor(now)) asked.push(permits)
    for (const quota of this.#quotas) if (quota.isAsking) asked.push(quota)
    return asked
  }

  #unknown(now: Instant, scope: Scope): Shortfall | undefined {
    const bucket = this.#requests ?? this.#tokens
    if (bucket?.isForgotten?.(now) !== true) return undefined
    const bound = bucket === this.#requests ? 'requests-per-minute' : 'tokens-per-minute'
    const limit = (this.#allowance.requests ?? this.#allowance.tokens)?.perMinute ?? 0
    return { scope, bound, limit, fitsAt: now + UNKNOWN_RETRY_US, isUnknown: true }
  }

  take(now: Instant, tokens: number, spend: Spend): readonly QuotaHold[] {
    this.#requests?.take(now, 1)
    this.#tokens?.take(now, tokens)
    this.#inFlight++
    this.#permits?.hold(now, this.#inFlight)
    return this.#quotas.length === 0 ? NO_HOLDS : this.#quotas.map((quota) => quota.take(now, spend))
  }

  settle(
    now: Instant,
    held: { readonly at: Instant; readonly tokens: number; readonly quotaHolds: readonly QuotaHold[] },
    used: { readonly tokens: number; readonly spend: Spend; readonly isRequestCounted: boolean },
  ): void {
    this.#inFlight--
    assert(this.#inFlight >= 0, 'a reservation is settled once')
    this.#permits?.hold(now, this.#inFlight)
    if (used.tokens <= held.tokens) this.#tokens?.giveBack(now, held.tokens - used.tokens)
    else this.#tokens?.takeMore(now, used.tokens - held.tokens)
    if (used.isRequestCounted) this.#holdUs.observe(now, now - held.at)
    else this.#requests?.giveBack(now, 1)
    for (const hold of held.quotaHolds) hold.quota.settle(now, hold, used.spend)
  }

  get quotas(): readonly Quota[] {
    return this.#quotas
  }

  /**
   * True when forgetting it changes nothing: a new one would start in the same state, or be given it by the ledger.
   * `isCrowded`: there are so many scopes that it is not kept for the next request.
   */
  isIdle(now: Instant, isCrowded = false): boolean {
    return (
      this.#inFlight === 0 &&
      (this.#requests?.isFull(now) ?? true) &&
      (this.#tokens?.isFull(now) ?? true) &&
      (this.#quotas.length === 0 || this.#areQuotasIdle(now, isCrowded))
    )
  }

  #areQuotasIdle(now: Instant, isCrowded: boolean): boolean {
    if (isCrowded || this.#parts.ledger !== undefined) return isCrowded || now - this.#askedAt > QUOTA_IDLE_US
    return this.#quotas.every((quota) => quota.isUnused(now))
  }

  #makeQuota(now: Instant, limit: SpendLimit): Quota {
    const { ledger, onMark } = this.#parts
    const tell = onMark && ((mark: number): void => onMark({ scope: this.scope, mark, quota }))
    const quota = new Quota(now, limit, ledger === undefined || this.account === undefined, tell)
    if (this.account !== undefined) ledger?.ask(this.account, quota)
    return quota
  }

  requestsView(now: Instant): BucketView | undefined {
    return this.#requests?.view(now)
  }

  tokensView(now: Instant): BucketView | undefined {
    return this.#tokens?.view(now)
  }

  view(now: Instant): ScopeView {
    return {
      requests: this.requestsView(now),
      tokens: this.tokensView(now),
      inFlight: this.#inFlight,
      quotas: this.#quotas.map((quota) => quota.view(now)),
    }
  }

  #retuned(
    now: Instant,
    noun: 'requests' | 'tokens',
    bucket: Bucket | undefined,
    allowance: Allowance,
  ): Bucket | undefined {
    const limit = allowance[noun]
    if (limit === undefined) return undefined
    if (bucket === undefined) return this.#makeBucket(now, `${this.name}:${noun}`, limit)
    bucket.retune(now, limit)
    return bucket
  }

  #permitsFor(now: Instant, { concurrencyMax }: Allowance): Permits | undefined {
    if (concurrencyMax === undefined) return undefined
    if (this.#permits === undefined) {
      const made = this.#makePermits(now, `${this.name}:concurrency`, concurrencyMax)
      if (this.#inFlight > 0) made.hold(now, this.#inFlight)
      return made
    }
    this.#permits.retune(now, concurrencyMax)
    return this.#permits
  }

  /**
   * Places come free one by one: with n held for a mean time T each, the next is due in about T ÷ n. Where gateways share
   * the limit, all of it is held when this one has no place.
   */
  #nextPlaceUs(): number {
    const heldCount = Math.max(1, this.#inFlight, this.#permits?.limit ?? 1)
    return Math.max(1, Math.ceil((this.#holdUs.view() ?? HOLD_US_PRIOR) / heldCount))
  }
}

function isLater(a: Instant | undefined, b: Instant | undefined): boolean {
  if (b === undefined) return false
  return a === undefined || a > b
}
