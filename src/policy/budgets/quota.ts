import type { Instant } from '../../base/clock.ts'
import { type Period, periodOf } from './calendar.ts'

/**
 * May this much be spent in this calendar period?
 *
 * A budget refills drop by drop; a quota comes back all at once, at midnight UTC or on the first of the month. It is a
 * counter with the period it belongs to: asked in a later period it starts from zero. Reservations hold part of it and
 * settle to what was used, in the period in which they were made; a settle that comes after the turn of the period
 * touches nothing, because that period's books are closed by the usage ledger, which is the truth (this counter is
 * its shadow, restored from it after a restart).
 *
 * It does not bill, and does not carry anything over.
 *
 * Example: 1,000,000 tokens a month, 999,900 used on the 30th: a request for 500 is refused until the 1st, one for
 * 100 passes.
 */
export interface QuotaLimit {
  readonly period: Period
  readonly tokensMax: number
}

/** A hold on one period's quota: names the period, so that a late settle cannot touch the next one. */
export interface QuotaHold {
  readonly quota: Quota
  readonly startsAt: Instant
  readonly tokens: number
}

export interface QuotaView {
  readonly period: Period
  readonly limit: number
  readonly remaining: number
  readonly resetUs: number
}

export class Quota {
  #limit: QuotaLimit
  #startsAt: Instant
  #endsAt: Instant
  #usedTokens = 0

  constructor(now: Instant, limit: QuotaLimit) {
    this.#limit = limit
    const bounds = periodOf(now, limit.period)
    this.#startsAt = bounds.startsAt
    this.#endsAt = bounds.endsAt
  }

  get period(): Period {
    return this.#limit.period
  }

  fitsAt(now: Instant, tokens: number): Instant | undefined {
    this.#turn(now)
    if (tokens > this.#limit.tokensMax) return undefined
    return this.#usedTokens + tokens <= this.#limit.tokensMax ? now : this.#endsAt
  }

  take(now: Instant, tokens: number): QuotaHold {
    this.#turn(now)
    this.#usedTokens += tokens
    return { quota: this, startsAt: this.#startsAt, tokens }
  }

  settle(now: Instant, hold: QuotaHold, usedTokens: number): void {
    this.#turn(now)
    if (hold.startsAt !== this.#startsAt) return
    this.#usedTokens = Math.max(0, this.#usedTokens - hold.tokens + usedTokens)
  }

  /** After a restart: what the ledger says was used in the period that `now` is in. */
  restore(now: Instant, usedTokens: number): void {
    this.#turn(now)
    this.#usedTokens = usedTokens
  }

  /** A change of the amount keeps what was used; a change of the period starts a new count. */
  retune(now: Instant, limit: QuotaLimit): void {
    const isSamePeriod = limit.period === this.#limit.period
    this.#limit = limit
    if (isSamePeriod) return
    this.#usedTokens = 0
    this.#endsAt = now
    this.#turn(now)
  }

  isUnused(now: Instant): boolean {
    this.#turn(now)
    return this.#usedTokens === 0
  }

  view(now: Instant): QuotaView {
    this.#turn(now)
    return {
      period: this.#limit.period,
      limit: this.#limit.tokensMax,
      remaining: Math.max(0, this.#limit.tokensMax - this.#usedTokens),
      resetUs: this.#endsAt - now,
    }
  }

  #turn(now: Instant): void {
    if (now < this.#endsAt) return
    const bounds = periodOf(now, this.#limit.period)
    this.#startsAt = bounds.startsAt
    this.#endsAt = bounds.endsAt
    this.#usedTokens = 0
  }
}
