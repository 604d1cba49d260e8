import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import type { SpendLimit } from '../../domain/tenant.ts'
import { periodOf } from './calendar.ts'

/**
 * May this much be spent in this period, in money and in tokens?
 *
 * A rate refills drop by drop; a quota comes back at midnight UTC, on the first of the month, or hour by hour where it is
 * for the last hours. Two sums: what is *held* by answers that run, and what was *used* in the period. A hold is never
 * made smaller than asked; it grows when its answer runs past it. It ends as what was used, in the period in which its
 * answer ended, as the ledger counts it: the turn of a period forgets what was used and keeps what is held.
 *
 * The ledger is the truth and this counter its shadow. `restore` sets it to what the ledger says and what the ledger
 * does not have yet. Until the first one the quota is unknown: `budgets.ts` says what that means.
 *
 * The last hours are whole ones and the one that runs: no span of that length ever has more than the limit.
 *
 * Laws: held = Σ open holds; neither sum is below zero; nothing that was used before the period began counts.
 * Example: 10 dollars a month, 9.90 used on the 30th: a request for 0.50 is refused until the 1st, one for 0.10 passes.
 */
export interface Spend {
  readonly tokens: number
  readonly nano: number
}

/** What one reservation holds of one quota. */
export interface QuotaHold {
  readonly quota: Quota
  tokens: number
  nano: number
}

export interface QuotaView {
  readonly limit: SpendLimit
  readonly used: Spend
  readonly held: Spend
  /** Of the part that is nearest to its end, 0 … 1. */
  readonly leftRatio: number
  readonly isKnown: boolean
  readonly startsAt: Instant
  readonly resetUs: number
}

/** The sums of one hour, as the ledger has them. */
export interface HourSpend extends Spend {
  /** Hours since the epoch. */
  readonly hour: number
}

export const US_PER_HOUR = 3_600_000_000

export class Quota {
  #limit: SpendLimit
  #startsAt: Instant = 0
  #endsAt: Instant = Number.NEGATIVE_INFINITY
  #usedTokens = 0
  #usedNano = 0
  #heldTokens = 0
  #heldNano = 0
  /** What was used and is not in the ledger yet. */
  #unwrittenTokens = 0
  #unwrittenNano = 0
  /** By hour, where the limit is for the last hours: at most one entry for each of them. */
  #hours: Map<number, { tokens: number; nano: number }> | undefined
  /** Marks that were told in this period. */
  #marksPassed = 0
  #isKnown: boolean
  #onMark: ((mark: number) => void) | undefined

  constructor(now: Instant, limit: SpendLimit, isKnown = true, onMark?: (mark: number) => void) {
    this.#limit = limit
    this.#isKnown = isKnown
    this.#onMark = onMark
    this.#begin(now)
  }

  get limit(): SpendLimit {
    return this.#limit
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Waits for the ledger's word. */
  get isAsking(): boolean {
    return !this.#isKnown
  }

  /** The first hour that counts, since the epoch. */
  startHour(now: Instant): number {
    this.#turn(now)
    return Math.floor(this.#startsAt / US_PER_HOUR)
  }

  get isByHours(): boolean {
    return this.#hours !== undefined
  }

  /** The first instant at which it would fit; undefined when it never will. `heldUs`: until a hold may end. */
  fitsAt(now: Instant, ask: Spend, heldUs: number): Instant | undefined {
    this.#turn(now)
    const { isHard, tokensMax = Number.POSITIVE_INFINITY, nanoMax = Number.POSITIVE_INFINITY } = this.#limit
    if (!isHard) return now
    if (ask.tokens > tokensMax || ask.nano > nanoMax) return undefined
    const { tokens, nano } = ask
    const fits = (usedTokens: number, usedNano: number): boolean =>
      usedTokens + tokens <= tokensMax && usedNano + nano <= nanoMax
    if (fits(this.#usedTokens + this.#heldTokens, this.#usedNano + this.#heldNano)) return now
    if (fits(this.#usedTokens, this.#usedNano)) return now + Math.max(1, heldUs)
    return this.#hours === undefined ? this.#endsAt : this.#freeAt(fits)
  }

  take(now: Instant, ask: Spend): QuotaHold {
    this.#turn(now)
    this.#heldTokens += ask.tokens
    this.#heldNano += ask.nano
    return { quota: this, tokens: ask.tokens, nano: ask.nano }
  }

  /** An answer runs past its hold: holds more, whatever is left. False when a hard budget is empty by that. */
  drawOn(now: Instant, hold: QuotaHold, more: Spend): boolean {
    this.#turn(now)
    hold.tokens += more.tokens
    hold.nano += more.nano
    this.#heldTokens += more.tokens
    this.#heldNano += more.nano
    const { isHard, tokensMax = Number.POSITIVE_INFINITY, nanoMax = Number.POSITIVE_INFINITY } = this.#limit
    if (!isHard) return true
    return this.#usedTokens + this.#heldTokens <= tokensMax && this.#usedNano + this.#heldNano <= nanoMax
  }

  settle(now: Instant, hold: QuotaHold, used: Spend): void {
    this.#turn(now)
    this.#heldTokens -= hold.tokens
    this.#heldNano -= hold.nano
    assert(this.#heldTokens >= 0 && this.#heldNano >= 0, 'a hold ends once')
    if (used.tokens === 0 && used.nano === 0) return
    this.#use(now, used)
    this.#unwrittenTokens += used.tokens
    this.#unwrittenNano += used.nano
    this.#tellMarks()
  }

  /** The ledger has this now: it ended in that hour. */
  written(hour: number, { tokens, nano }: Spend): void {
    if (hour * US_PER_HOUR < this.#startsAt) return
    this.#unwrittenTokens = Math.max(0, this.#unwrittenTokens - tokens)
    this.#unwrittenNano = Math.max(0, this.#unwrittenNano - nano)
  }

  /** What the ledger says was used from `startHour` on; an answer for an earlier period is of no use. */
  restore(now: Instant, startHour: number, spent: readonly HourSpend[]): boolean {
    if (this.startHour(now) !== startHour) return false
    this.#usedTokens = 0
    this.#usedNano = 0
    this.#hours?.clear()
    for (const one of spent) this.#use(one.hour * US_PER_HOUR, one)
    this.#use(now, { tokens: this.#unwrittenTokens, nano: this.#unwrittenNano })
    // Marks that lie behind at the first sight were told by whoever was there when they were passed.
    if (this.#isKnown) this.#tellMarks()
    else this.#marksPassed = this.#countMarks()
    this.#isKnown = true
    return true
  }

  /** A change of the amount keeps what was used; another period is another quota. */
  retune(now: Instant, limit: SpendLimit): void {
    this.#turn(now)
    this.#limit = limit
    this.#marksPassed = this.#countMarks()
  }

  /** True when forgetting it changes nothing. */
  isUnused(now: Instant): boolean {
    this.#turn(now)
    return this.#usedTokens === 0 && this.#usedNano === 0 && this.#heldTokens === 0 && this.#heldNano === 0
  }

  view(now: Instant): QuotaView {
    this.#turn(now)
    return {
      limit: this.#limit,
      used: { tokens: this.#usedTokens, nano: this.#usedNano },
      held: { tokens: this.#heldTokens, nano: this.#heldNano },
      leftRatio: Math.max(0, 1 - this.#ratio(this.#usedTokens + this.#heldTokens, this.#usedNano + this.#heldNano)),
      isKnown: this.#isKnown,
      startsAt: this.#startsAt,
      resetUs: this.#endsAt - now,
    }
  }

  #use(at: Instant, { tokens, nano }: Spend): void {
    if (tokens === 0 && nano === 0) return
    this.#usedTokens += tokens
    this.#usedNano += nano
    if (this.#hours === undefined) return
    const hour = Math.floor(at / US_PER_HOUR)
    const known = this.#hours.get(hour)
    if (known === undefined) this.#hours.set(hour, { tokens, nano })
    else {
      known.tokens += tokens
      known.nano += nano
    }
  }

  /** When enough of the oldest hours has gone for it to fit beside what is used. */
  #freeAt(fits: (usedTokens: number, usedNano: number) => boolean): Instant {
    const { period } = this.#limit
    const spanHours = typeof period === 'object' ? period.hours + 1 : 1
    let tokens = this.#usedTokens
    let nano = this.#usedNano
    for (const [hour, spent] of [...(this.#hours ?? [])].sort(([a], [b]) => a - b)) {
      tokens -= spent.tokens
      nano -= spent.nano
      if (fits(tokens, nano)) return (hour + spanHours) * US_PER_HOUR
    }
    return this.#endsAt
  }

  #ratio(tokens: number, nano: number): number {
    const { tokensMax, nanoMax } = this.#limit
    const ofTokens = tokensMax === undefined ? 0 : tokens / tokensMax
    return Math.max(ofTokens, nanoMax === undefined ? 0 : nano / nanoMax)
  }

  #countMarks(): number {
    const ratio = this.#ratio(this.#usedTokens, this.#usedNano)
    let count = 0
    for (const mark of this.#limit.marks) if (ratio >= mark) count++
    return count
  }

  #tellMarks(): void {
    const { marks } = this.#limit
    if (this.#marksPassed >= marks.length) return
    const passed = this.#countMarks()
    for (; this.#marksPassed < passed; this.#marksPassed++) this.#onMark?.(marks[this.#marksPassed] as number)
  }

  #turn(now: Instant): void {
    if (now >= this.#endsAt) this.#begin(now)
  }

  #begin(now: Instant): void {
    const { period } = this.#limit
    if (typeof period === 'object') {
      this.#beginHour(now, period.hours)
      return
    }
    const bounds = periodOf(now, period)
    this.#startsAt = bounds.startsAt
    this.#endsAt = bounds.endsAt
    this.#usedTokens = 0
    this.#usedNano = 0
    this.#unwrittenTokens = 0
    this.#unwrittenNano = 0
    this.#marksPassed = 0
  }

  #beginHour(now: Instant, hours: number): void {
    this.#hours ??= new Map()
    const first = Math.floor(now / US_PER_HOUR) - hours
    this.#startsAt = first * US_PER_HOUR
    this.#endsAt = (first + hours + 1) * US_PER_HOUR
    for (const [hour, spent] of this.#hours) {
      if (hour >= first) continue
      this.#hours.delete(hour)
      this.#usedTokens -= spent.tokens
      this.#usedNano -= spent.nano
    }
    if (this.#hours.size === 0) {
      this.#unwrittenTokens = 0
      this.#unwrittenNano = 0
    }
    this.#marksPassed = Math.min(this.#marksPassed, this.#countMarks())
  }
}
