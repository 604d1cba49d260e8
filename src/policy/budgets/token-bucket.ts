import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import type { RateLimit } from '../../domain/tenant.ts'

/**
 * May this much be spent now, and if not, when?
 *
 * A token bucket: it holds `burst`, refills at `perMinute`, and a spender takes what he needs or nothing. All
 * arithmetic is in whole *grains*, of which a token has 60,000,000 (the microseconds of a minute): at P tokens a
 * minute exactly P grains drip in per microsecond, so nothing is lost to rounding however often it is asked, and the
 * instant at which an amount will fit is exact.
 *
 *     level  ├────────────┤ burst · 60,000,000 grains        drip: perMinute grains / µs
 *
 * The reservation is an estimate, so what comes back at settle may be more (`giveBack`, never above full) or less
 * (`takeMore`, which may push the level below zero: a debt that the refill pays before anybody spends again).
 *
 * Laws: spent over any window ≤ rate · window + burst + what `takeMore` added (L4). It keeps no list of what was
 * spent and knows no tenants.
 *
 * Example: 60 a minute, burst 10, full. Ten spenders of 1 pass at once, the eleventh is told "in 1,000,000 µs", and
 * exactly then it fits.
 */
export const GRAINS_PER_TOKEN = 60_000_000

/** The largest burst whose grains are exact in a double: 2^53 ÷ 60,000,000, about 150 million. */
export const BURST_MAX = Math.floor(Number.MAX_SAFE_INTEGER / GRAINS_PER_TOKEN)

export interface BucketView {
  readonly limit: number
  /** Whole tokens that fit now; never negative. */
  readonly remaining: number
  /** Until it is full again. */
  readonly resetUs: number
}

/** A budget's bucket: this process' own (below), or one that several gateways share (`policy/sharing`). */
export interface Bucket {
  /** The first instant at which this much fits: `now` when it does already, undefined when it never will. */
  fitsAt(now: Instant, amount: number): Instant | undefined
  /** Call only when it fits; several buckets are asked first and spent from together. */
  take(now: Instant, amount: number): void
  giveBack(now: Instant, amount: number): void
  takeMore(now: Instant, amount: number): void
  retune(now: Instant, limit: RateLimit): void
  /** True when a new bucket would be in the same state. */
  isFull(now: Instant): boolean
  view(now: Instant): BucketView
  /**
   * Of a shared bucket: asks the store for one amount that is larger than what is in hand. False where asking cannot help.
   */
  askFor?(now: Instant, amount: number): boolean
  /** Of a shared bucket: it was asked for an amount, and the store has not been called since. */
  readonly isAsking?: boolean
  /** Of a shared bucket: the store has given this gateway's share to others. */
  isForgotten?(now: Instant): boolean
}

/** `name` tells the budget from all others, at every gateway alike. */
export type MakeBucket = (now: Instant, name: string, limit: RateLimit) => Bucket

export const makeOwnBucket: MakeBucket = (now, _name, limit) => new TokenBucket(now, limit)

export class TokenBucket implements Bucket {
  #perMinute: number
  #fullGrains: number
  #grains: number
  #at: Instant

  /** It starts full. */
  constructor(now: Instant, limit: RateLimit) {
    checkLimit(limit)
    this.#perMinute = limit.perMinute
    this.#fullGrains = limit.burst * GRAINS_PER_TOKEN
    this.#grains = this.#fullGrains
    this.#at = now
  }

  /** The first instant at which this much fits: `now` when it does already, undefined when it never will. */
  fitsAt(now: Instant, amount: number): Instant | undefined {
    this.#refill(now)
    const wanted = amount * GRAINS_PER_TOKEN
    if (wanted > this.#fullGrains) return undefined
    const missing = wanted - this.#grains
    if (missing <= 0) return now
    return this.#perMinute === 0 ? undefined : now + Math.ceil(missing / this.#perMinute)
  }

  /** Call only when it fits; several buckets are asked first and spent from together. */
  take(now: Instant, amount: number): void {
    assert(Number.isInteger(amount) && amount >= 0, 'whole tokens are spent')
    this.#refill(now)
    this.#grains -= amount * GRAINS_PER_TOKEN
    assert(this.#grains >= 0, 'a bucket is asked before it is spent from')
  }

  /** What was reserved and not used. The caller never gives back more than it took (L4). */
  giveBack(now: Instant, amount: number): void {
    this.#refill(now)
    this.#grains = Math.min(this.#fullGrains, this.#grains + amount * GRAINS_PER_TOKEN)
  }

  /** What was used beyond the reservation. Debt is bounded by one burst, so that one giant cannot lock a tenant out. */
  takeMore(now: Instant, amount: number): void {
    this.#refill(now)
    this.#grains = Math.max(-this.#fullGrains, this.#grains - amount * GRAINS_PER_TOKEN)
  }

  /** New terms from now on; what is in the bucket stays, as far as the new burst holds it. */
  retune(now: Instant, limit: RateLimit): void {
    checkLimit(limit)
    this.#refill(now)
    this.#perMinute = limit.perMinute
    this.#fullGrains = limit.burst * GRAINS_PER_TOKEN
    this.#grains = Math.min(this.#fullGrains, this.#grains)
  }

  isFull(now: Instant): boolean {
    this.#refill(now)
    return this.#grains === this.#fullGrains
  }

  view(now: Instant): BucketView {
    this.#refill(now)
    const missing = this.#fullGrains - this.#grains
    return {
      limit: this.#fullGrains / GRAINS_PER_TOKEN,
      remaining: Math.max(0, Math.floor(this.#grains / GRAINS_PER_TOKEN)),
      resetUs:
        missing === 0 ? 0 : this.#perMinute === 0 ? Number.MAX_SAFE_INTEGER : Math.ceil(missing / this.#perMinute),
    }
  }

  #refill(now: Instant): void {
    const elapsedUs = now - this.#at
    if (elapsedUs <= 0) return
    this.#at = now
    const missing = this.#fullGrains - this.#grains
    // Multiply only when the product is below what is missing: it stays exact.
    if (elapsedUs >= missing / Math.max(1, this.#perMinute)) {
      if (this.#perMinute > 0) this.#grains = this.#fullGrains
    } else {
      this.#grains += elapsedUs * this.#perMinute
    }
  }
}

function checkLimit(limit: RateLimit): void {
  assert(Number.isInteger(limit.perMinute) && limit.perMinute >= 0, 'a rate is a whole number per minute')
  assert(
    Number.isInteger(limit.burst) && limit.burst >= 0 && limit.burst <= BURST_MAX,
    'a burst is at most 150 million',
  )
}
