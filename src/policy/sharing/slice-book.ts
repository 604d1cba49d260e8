import type { Instant } from '../../base/clock.ts'
import { fnv1a32 } from '../../base/rng.ts'
import type { RateLimit } from '../../domain/tenant.ts'
import type { Account, ShardAnswer } from './lease-shard.ts'
import { LeasedBucket, type ShardLink } from './leased-bucket.ts'
import type { Membership } from './shard-clock.ts'

/**
 * What must this gateway tell the store now, and what follows from the answers?
 *
 * All leased buckets of one gateway. A bucket belongs to a shard by the hash of its name, and all due buckets of a shard
 * go in one call. A shard has one call in flight; a call without an answer for `callUs` no longer holds up the next
 * one, and its answer still counts when it comes, because accounts are totals. Every shard is called each `beatUs`, so
 * that a gateway with idle scopes does not look silent.
 *
 * The store is silent here when no call of the last `silentUs` was answered. That begins the safe share
 * (`leased-bucket.ts`); it ends with an answer to a call that was sent since.
 *
 * It knows no clock, no store and no promise: `lifecycle/sharing/renewals.ts` asks for the calls and brings the answers.
 *
 * Bounds: `accountsMax` accounts a call; a bucket is listed from a spending until it was found not to be due.
 */
export const SHARING_DEFAULTS = {
  /** A renewal of due slices: a quarter of the time that a slice lasts. */
  renewUs: 50_000,
  beatUs: 250_000,
  /** Two beats: one lost answer is not silence. */
  silentUs: 500_000,
  /** A call without an answer for this long no longer holds up the next one. */
  callUs: 250_000,
  /** The store holds back the share of a gateway that it has not heard for this long. */
  ttlMs: 1_000,
  /** The store forgets a gateway that it has not heard for this long: ten minutes. */
  forgetMs: 600_000,
  /** Buckets with one hash tag are a shard: enough to spread over the nodes of a cluster, few enough to beat on all. */
  shardCount: 16,
  /** Gateways that are assumed before the store has told how many there are. */
  gatewaysMax: 16,
  /** Accounts of one call: some milliseconds of the store's time at most. */
  accountsMax: 500,
}

export type SharingOptions = typeof SHARING_DEFAULTS

export interface ShardCall {
  readonly shard: number
  readonly sentAt: Instant
  readonly member: Membership
  readonly accounts: readonly Account[]
}

interface Sent {
  readonly bucket: LeasedBucket
  readonly refunded: number
}

export class SliceBook {
  readonly #id: string
  readonly #options: SharingOptions
  readonly #shards: ShardBook[]
  /** What each call that is under way was made of; goes with the call. */
  readonly #sent = new WeakMap<ShardCall, readonly Sent[]>()

  /** `id` is new with each start of a gateway. */
  constructor(now: Instant, id: string, options: Partial<SharingOptions> = {}) {
    this.#id = id
    this.#options = { ...SHARING_DEFAULTS, ...options }
    this.#shards = Array.from({ length: this.#options.shardCount }, () => new ShardBook(now, this.#options))
  }

  get id(): string {
    return this.#id
  }

  get options(): SharingOptions {
    return this.#options
  }

  bucket(now: Instant, name: string, limit: RateLimit): LeasedBucket {
    return new LeasedBucket(now, name, limit, this.#shards[fnv1a32(name) % this.#shards.length] as ShardBook)
  }

  /** Every call that should be made now. Each must be answered or given up through `answered`. */
  due(now: Instant): ShardCall[] {
    const calls: ShardCall[] = []
    for (const [shard, book] of this.#shards.entries()) {
      if (book.isBusy(now)) continue
      const due = book.takeDue(now)
      if (due.length === 0 && now - book.calledAt < this.#options.beatUs) continue
      book.calledAt = now
      const sent = due.map((bucket) => ({ bucket, account: bucket.account(now), refunded: bucket.refunded }))
      const call = { shard, sentAt: now, member: this.#memberOf(book), accounts: sent.map(({ account }) => account) }
      this.#sent.set(call, sent)
      book.inFlight = call
      calls.push(call)
    }
    return calls
  }

  /** Undefined: there was no answer. */
  answered(now: Instant, call: ShardCall, answer: ShardAnswer | undefined): void {
    const book = this.#shards[call.shard] as ShardBook
    const sent = this.#sent.get(call) ?? []
    if (book.inFlight === call) book.inFlight = undefined
    for (const { bucket } of sent) book.noteSpending(bucket)
    if (answer === undefined) return
    book.heard(now, call.sentAt, answer)
    for (const [i, { bucket, refunded }] of sent.entries()) {
      const [account, answered] = [call.accounts[i], answer.accounts[i]]
      if (account !== undefined && answered !== undefined)
        bucket.answered(now, account, answered, answer.epoch, refunded)
    }
  }

  /** Shards that the store has not answered for, and the longest silence among them. */
  silence(now: Instant): { readonly shardCount: number; readonly sinceUs: number } {
    let [shardCount, sinceUs] = [0, 0]
    for (const book of this.#shards) {
      if (book.silentSince(now) === undefined) continue
      shardCount++
      sinceUs = Math.max(sinceUs, now - book.heardAt)
    }
    return { shardCount, sinceUs }
  }

  /** Since the oldest of the shards' last answers. */
  answerAgeUs(now: Instant): number {
    return Math.max(...this.#shards.map((book) => now - book.heardAt))
  }

  /** Gateways that the store did not hear, as it last told. */
  get silentCount(): number {
    return Math.max(...this.#shards.map((book) => book.silentCount))
  }

  /** Gateways as the store last told, or as assumed before. */
  get gatewayCount(): number {
    return Math.max(...this.#shards.map((book) => book.gatewayCount))
  }

  #memberOf({ epoch, told }: ShardBook): Membership {
    const { ttlMs, forgetMs } = this.#options
    return { id: this.#id, epoch, told, ttlMs, forgetMs }
  }
}

class ShardBook implements ShardLink {
  readonly #options: SharingOptions
  /** Buckets that may be due. */
  readonly #listed = new Set<LeasedBucket>()
  /** Buckets that spent from their safe share and are to be settled. */
  readonly #alone = new Set<LeasedBucket>()
  told = 0
  epoch = ''
  liveRatio = 1
  silentCount = 0
  /** When the last call that was answered was sent. */
  heardAt: Instant
  calledAt = Number.NEGATIVE_INFINITY
  inFlight: ShardCall | undefined

  constructor(now: Instant, options: SharingOptions) {
    this.#options = options
    this.heardAt = now - options.silentUs
  }

  get forgetUs(): number {
    return this.#options.forgetMs * 1_000 - this.#options.silentUs
  }

  get gatewayCount(): number {
    return this.told === 0 ? this.#options.gatewaysMax : this.told
  }

  silentSince(now: Instant): Instant | undefined {
    const since = this.heardAt + this.#options.silentUs
    return now > since ? since : undefined
  }

  noteSpending(bucket: LeasedBucket): void {
    this.#listed.add(bucket)
    if (bucket.hasSpentAlone) this.#alone.add(bucket)
  }

  isBusy(now: Instant): boolean {
    return this.inFlight !== undefined && now - this.inFlight.sentAt < this.#options.callUs
  }

  takeDue(now: Instant): LeasedBucket[] {
    const due: LeasedBucket[] = []
    for (const bucket of this.#listed) {
      if (due.length === this.#options.accountsMax) break
      this.#listed.delete(bucket)
      if (bucket.isDue(now)) due.push(bucket)
    }
    return due
  }

  heard(now: Instant, sentAt: Instant, answer: ShardAnswer): void {
    const heldBackUs = this.#heldBackUs(sentAt, answer.gapUs)
    if (sentAt >= this.heardAt) {
      this.heardAt = sentAt
      this.epoch = answer.epoch
      this.told = answer.gatewayCount
      this.silentCount = answer.silentCount
      this.liveRatio = (answer.gatewayCount - answer.silentCount) / answer.gatewayCount
    }
    for (const bucket of this.#alone) bucket.settleAlone(now, heldBackUs)
    this.#alone.clear()
  }

  /**
   * How long the store held back this gateway's share. A store that was emptied, or has forgotten the gateway, does not
   * know; it filled nothing while it was away, so the gateway's own count is right. A gateway that the store has never
   * known had no share.
   */
  #heldBackUs(sentAt: Instant, gapUs: number): number {
    const { ttlMs, forgetMs } = this.#options
    const ownUs = this.told === 0 ? 0 : Math.min(sentAt - this.heardAt, forgetMs * 1_000)
    return Math.max(0, (gapUs < 0 ? ownUs : gapUs) - ttlMs * 1_000)
  }
}
