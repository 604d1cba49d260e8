import type { Instant } from '../../base/clock.ts'
import type { RateLimit } from '../../domain/tenant.ts'
import { type Bucket, type BucketView, type MakeBucket, TokenBucket } from '../../policy/budgets/token-bucket.ts'
import type { SliceBook } from '../../policy/sharing/slice-book.ts'

/**
 * Budgets of one simulated gateway. `leased` is what Spillway does; the others are what is compared with: `static` gives
 * each gateway 1 ÷ N for ever, `fallback` uses the whole limit at each gateway while the store is away.
 */
export type SharingWay = 'leased' | 'static' | 'fallback'

export function makeSharedBucket(way: SharingWay, book: SliceBook, gatewayCount: number): MakeBucket {
  if (way === 'static') return (now, _name, limit) => new TokenBucket(now, partOf(limit, gatewayCount))
  if (way === 'leased') return (now, name, limit) => book.bucket(now, name, limit)
  return (now, name, limit) =>
    new FallbackBucket(
      book.bucket(now, name, limit),
      new TokenBucket(now, limit),
      (at) => book.silence(at).shardCount > 0,
    )
}

const partOf = ({ perMinute, burst }: RateLimit, count: number): RateLimit => ({
  perMinute: Math.floor(perMinute / count),
  burst: Math.max(1, Math.floor(burst / count)),
})

/** The shared budget, or the whole limit by itself while the store is away. */
class FallbackBucket implements Bucket {
  readonly #shared: Bucket
  readonly #own: Bucket
  readonly #isAway: (now: Instant) => boolean

  constructor(shared: Bucket, own: Bucket, isAway: (now: Instant) => boolean) {
    this.#shared = shared
    this.#own = own
    this.#isAway = isAway
  }

  #at(now: Instant): Bucket {
    return this.#isAway(now) ? this.#own : this.#shared
  }

  fitsAt(now: Instant, amount: number): Instant | undefined {
    return this.#at(now).fitsAt(now, amount)
  }

  take(now: Instant, amount: number): void {
    this.#at(now).take(now, amount)
  }

  giveBack(now: Instant, amount: number): void {
    this.#at(now).giveBack(now, amount)
  }

  takeMore(now: Instant, amount: number): void {
    this.#at(now).takeMore(now, amount)
  }

  retune(now: Instant, limit: RateLimit): void {
    this.#shared.retune(now, limit)
    this.#own.retune(now, limit)
  }

  isFull(now: Instant): boolean {
    return this.#shared.isFull(now) && this.#own.isFull(now)
  }

  view(now: Instant): BucketView {
    return this.#at(now).view(now)
  }

  askFor(now: Instant, amount: number): boolean {
    return this.#at(now).askFor?.(now, amount) ?? false
  }

  get isAsking(): boolean {
    return this.#shared.isAsking ?? false
  }
}
