import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import type { RateLimit } from '../../domain/tenant.ts'
import { type Bucket, type BucketView, GRAINS_PER_TOKEN } from '../budgets/token-bucket.ts'
import type { Account, AccountAnswer } from './lease-shard.ts'

/**
 * May this much be spent now at this gateway, of a budget that several gateways share?
 *
 * The gateway's side of one account (`lease-shard.ts` has the store's). It spends its slice, what was granted and not yet
 * spent, without asking anybody. Before the first answer it spends on credit, up to one slice; the debt is charged once.
 * While the store is silent it lives on its safe share:
 *
 *     slice = granted + refunded − spent            S = burst ÷ 2N, at least 1: the most that is in hand
 *     silent: + R/N, dripping, at most S in hand    spent "alone", settled when the store is heard again
 *
 * What was spent alone counts as spent, except for what the store held back meanwhile: R/N for the part of the silence,
 * as the *store* has seen it, that is longer than `ttl`. A gateway whose calls arrive and whose answers are lost is
 * therefore charged everything.
 *
 * Refunds go to the slice; a slice larger than S is deposited in the store. When an amount will fit is told from the
 * fleet's level, as of the last answer.
 *
 * It has the methods of `TokenBucket`, so that budgets can have either. It knows no clock and sends nothing:
 * `slice-book.ts` collects the accounts that are due.
 *
 * Laws: L4 for the fleet. Example: 600 a minute, burst 200, 4 gateways: S = 25. The first request of 10 passes on credit;
 * 50 ms later the store charges 10 and grants, say, 20. A request of 40 is larger than the slice: it does not fit now, and
 * a call with `need` 40 is tried once.
 */
export interface ShardLink {
  /** N: as last told, or the number that is assumed before. */
  readonly gatewayCount: number
  readonly liveRatio: number
  /** Time after `silentSince` at which the store gives this gateway's share to others. */
  readonly forgetUs: number
  readonly epoch: string
  /** Since when the store has not been heard; undefined while it is. */
  silentSince(now: Instant): Instant | undefined
  /** The bucket may be due. */
  noteSpending(bucket: LeasedBucket): void
}

/** A slice is worth this much of the local spending rate: four renewals. */
const WANT_RATIO = 0.2
/** Memory of the spending rate: a second, so that a burst is followed within a few renewals. */
const RATE_MEMORY_US = 1_000_000
/** A scope that nobody asked for this long is idle, and sends nothing. */
const IDLE_US = 1_000_000
/** Until the next renewal: the soonest that more of the fleet's level can be here. */
const RENEWAL_US = 50_000
/** When to come back with a request that is larger than a safe share allows: the store may be heard again by then. */
const SILENT_RETRY_US = 1_000_000
/** A bucket that was idle for this long, and for as long as it takes to fill, is as good as new. */
const FORGET_US = 60_000_000

export class LeasedBucket implements Bucket {
  readonly name: string
  readonly #shard: ShardLink
  readonly #birth: Instant
  #limit: RateLimit
  #spent = 0
  #granted = 0
  #refunded = 0
  #deposited = 0
  #epoch = ''
  #level: number
  #levelAt: Instant
  #aloneSpent = 0
  #aloneGrains = 0
  #aloneAt: Instant
  /** Tokens spent within the memory of the rate. */
  #recent = 0
  #recentAt: Instant
  #largest = 1
  #askedAt: Instant
  #need = 0

  constructor(now: Instant, name: string, limit: RateLimit, shard: ShardLink) {
    this.name = name
    this.#shard = shard
    this.#limit = limit
    this.#birth = now
    this.#level = halfOf(limit)
    this.#levelAt = now
    this.#aloneAt = now
    this.#recentAt = now
    this.#askedAt = now
  }

  fitsAt(now: Instant, amount: number): Instant | undefined {
    this.#ask(now, amount)
    if (this.#available(now) >= amount) return now
    const { perMinute } = this.#limit
    if (amount > halfOf(this.#limit) + this.#sliceMax) return undefined
    if (this.#shard.silentSince(now) !== undefined) return this.#fitsAloneAt(now, amount)
    const missing = amount - Math.max(0, this.#inHand) - this.#fleetLevel(now)
    if (missing <= 0) return now + RENEWAL_US
    return perMinute === 0 ? undefined : now + Math.max(RENEWAL_US, Math.ceil((missing * GRAINS_PER_TOKEN) / perMinute))
  }

  take(now: Instant, amount: number): void {
    assert(Number.isInteger(amount) && amount >= 0, 'whole tokens are spent')
    assert(this.#available(now) >= amount, 'a bucket is asked before it is spent from')
    const fromSlice = Math.min(amount, Math.max(0, this.#inHand))
    this.#spent += fromSlice
    this.#aloneSpent += amount - fromSlice
    this.#aloneGrains -= (amount - fromSlice) * GRAINS_PER_TOKEN
    this.#fade(now)
    this.#recent += amount
    this.#shard.noteSpending(this)
  }

  giveBack(_now: Instant, amount: number): void {
    this.#refunded += amount
    if (this.#slice > this.#sliceMax) this.#shard.noteSpending(this)
  }

  /** What was used beyond the reservation: a debt, at most one burst. */
  takeMore(_now: Instant, amount: number): void {
    this.#spent += Math.max(0, Math.min(amount, this.#slice + this.#limit.burst))
    this.#shard.noteSpending(this)
  }

  retune(now: Instant, limit: RateLimit): void {
    this.#accrue(now)
    this.#level = Math.min(this.#fleetLevel(now), halfOf(limit))
    this.#levelAt = now
    this.#limit = limit
    if (this.#slice > this.#sliceMax) this.#shard.noteSpending(this)
  }

  /** True when a new account would be no better off: idle for as long as the bucket takes to fill, and nothing owed. */
  isFull(now: Instant): boolean {
    const { perMinute, burst } = this.#limit
    const fillUs = perMinute === 0 ? Number.POSITIVE_INFINITY : (burst * GRAINS_PER_TOKEN) / perMinute
    return now - this.#askedAt > Math.max(FORGET_US, fillUs) && this.#slice >= 0 && this.#aloneSpent === 0
  }

  /** From the fleet's level: what a client could have now through this gateway. */
  view(now: Instant): BucketView {
    const { perMinute, burst } = this.#limit
    const level = this.#fleetLevel(now)
    const inHand = Math.max(0, this.#available(now))
    const isSilent = this.#shard.silentSince(now) !== undefined
    const missing = Math.max(0, halfOf(this.#limit) - level)
    return {
      limit: burst,
      remaining: Math.min(burst, isSilent ? inHand : inHand + Math.max(0, level)),
      resetUs:
        missing === 0
          ? 0
          : perMinute === 0
            ? Number.MAX_SAFE_INTEGER
            : Math.ceil((missing * GRAINS_PER_TOKEN) / perMinute),
    }
  }

  // ── for the book ──

  /** Marks one request that is larger than the slice; false where asking cannot help. */
  askFor(now: Instant, amount: number): boolean {
    if (this.#available(now) >= amount || this.#shard.silentSince(now) !== undefined) return false
    if (amount > Math.max(0, this.#inHand) + this.#fleetLevel(now)) return false
    this.#need = Math.max(this.#need, amount)
    this.#shard.noteSpending(this)
    return true
  }

  /** A request waits for a call that has not been made yet. */
  get isAsking(): boolean {
    return this.#need > 0
  }

  isForgotten(now: Instant): boolean {
    const since = this.#shard.silentSince(now)
    return since !== undefined && now - since >= this.#shard.forgetUs
  }

  isDue(now: Instant): boolean {
    if (this.#need > 0 || this.#slice < 0 || this.#slice > this.#sliceMax) return true
    return now - this.#askedAt <= IDLE_US && this.#slice < this.#want(now) / 2
  }

  /** The account as it is now; deposits what is over a slice. */
  account(now: Instant): Account {
    const surplus = Math.max(0, this.#slice - this.#sliceMax)
    this.#deposited += surplus
    this.#spent += surplus
    const need = this.#need
    this.#need = 0
    return {
      name: this.name,
      birth: this.#birth,
      perMinute: this.#limit.perMinute,
      half: halfOf(this.#limit),
      spent: this.#spent,
      granted: this.#granted + this.#refunded,
      deposited: this.#deposited,
      want: this.#want(now),
      epoch: this.#epoch,
      need,
    }
  }

  /** `sent` is what `account` gave; refunds since then are not in the answer. */
  answered(now: Instant, sent: Account, answer: AccountAnswer, epoch: string, refundedThen: number): void {
    if (answer.granted < 0) return
    assert(sent.birth === this.#birth, 'an answer is for the account that asked')
    this.#granted = Math.max(this.#granted, answer.granted - refundedThen)
    this.#epoch = epoch
    this.#level = answer.level
    this.#levelAt = now
  }

  get refunded(): number {
    return this.#refunded
  }

  get hasSpentAlone(): boolean {
    return this.#aloneSpent > 0
  }

  /** The store is heard again. It held back this gateway's share for `heldBackUs`; the rest of the spending counts. */
  settleAlone(now: Instant, heldBackUs: number): void {
    const forgiven = Math.floor((this.#perUs * heldBackUs) / GRAINS_PER_TOKEN)
    this.#spent += Math.max(0, this.#aloneSpent - forgiven)
    this.#aloneSpent = 0
    this.#aloneGrains = 0
    this.#aloneAt = now
    this.#shard.noteSpending(this)
  }

  // ── inside ──

  get #slice(): number {
    return this.#granted + this.#refunded - this.#spent
  }

  /** The slice; before the first answer, with the credit of a newcomer. */
  get #inHand(): number {
    return this.#epoch === '' ? this.#slice + this.#sliceMax : this.#slice
  }

  get #sliceMax(): number {
    return sliceMaxOf(this.#limit, this.#shard.gatewayCount)
  }

  /** Grains of the safe share for each microsecond. */
  get #perUs(): number {
    return this.#limit.perMinute / this.#shard.gatewayCount
  }

  #available(now: Instant): number {
    this.#accrue(now)
    const inHand = this.#inHand
    // A debt is paid before the safe share is spent.
    return inHand < 0 ? 0 : inHand + Math.floor(this.#aloneGrains / GRAINS_PER_TOKEN)
  }

  #accrue(now: Instant): void {
    const since = this.#shard.silentSince(now)
    if (since === undefined) {
      this.#aloneGrains = 0
      return
    }
    const dt = now - Math.max(since, this.#aloneAt)
    if (dt <= 0) return
    this.#aloneAt = now
    const grainsMax = Math.max(0, this.#sliceMax - Math.max(0, this.#inHand)) * GRAINS_PER_TOKEN
    this.#aloneGrains = Math.min(grainsMax, this.#aloneGrains + Math.floor(dt * this.#perUs))
  }

  #fitsAloneAt(now: Instant, amount: number): Instant | undefined {
    if (amount > this.#sliceMax) return now + SILENT_RETRY_US
    if (this.#perUs === 0) return undefined
    const missing = (amount - Math.max(0, this.#inHand)) * GRAINS_PER_TOKEN - this.#aloneGrains
    return now + Math.max(1, Math.ceil(missing / this.#perUs))
  }

  #fleetLevel(now: Instant): number {
    const dripped =
      (Math.max(0, now - this.#levelAt) * this.#limit.perMinute * this.#shard.liveRatio) / GRAINS_PER_TOKEN
    return Math.min(halfOf(this.#limit), Math.floor(this.#level + dripped))
  }

  #ask(now: Instant, amount: number): void {
    this.#fade(now)
    this.#largest = Math.max(this.#largest, amount)
    this.#askedAt = now
    this.#shard.noteSpending(this)
  }

  #fade(now: Instant): void {
    const kept = RATE_MEMORY_US / (RATE_MEMORY_US + Math.max(0, now - this.#recentAt))
    this.#recent *= kept
    this.#largest = Math.max(1, this.#largest * kept)
    this.#recentAt = Math.max(now, this.#recentAt)
  }

  /** Two requests fit at least, where a slice holds as much: one is spent while the next is fetched. */
  #want(now: Instant): number {
    this.#fade(now)
    return Math.min(this.#sliceMax, Math.max(Math.ceil(this.#recent * WANT_RATIO), Math.ceil(2 * this.#largest)))
  }
}

/** Tokens that stay in the store; a burst of 1 stays whole. */
export const halfOf = ({ burst }: RateLimit): number => Math.ceil(burst / 2)

/** The most that one gateway holds of a budget. */
export const sliceMaxOf = ({ burst }: RateLimit, gatewayCount: number): number =>
  burst === 0 ? 0 : Math.max(1, Math.floor(burst / (2 * gatewayCount)))
