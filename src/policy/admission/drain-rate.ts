import type { Instant } from '../../base/clock.ts'

/**
 * How fast does this pool work off its backlog?
 *
 * Weighted tokens per microsecond and ready replica, learned from what began to answer while work was waiting. Only such
 * stretches count: an idle pool completes little because little is asked, and taking that for its capacity would make
 * the first burst look hopeless. Time in which nothing waits passes without a trace, so a quiet night forgets nothing.
 * While work waits and nothing begins, the silence counts too: a stalled engine is slow before it says so.
 *
 * What begins is counted at its *predicted* cost, the unit in which the backlog is counted: if predictions are
 * all a third too low, so is the rate, and their quotient, the wait, is still right. It starts from a prior (what the
 * step-time model says a replica can do) with the weight of some busy seconds.
 *
 * It does not know single replicas; one that is slow shows in the mean.
 *
 * Example: prior 0.02 tokens/µs. Over ten busy seconds two replicas complete 300,000 weighted tokens, 0.015 a
 * microsecond each: the rate moves to about 0.0167. A backlog of 60,000 then waits 60,000 ÷ (2 · 0.0167) = 1.8 s.
 */
export const DRAIN_RATE_DEFAULTS = {
  /** Busy time that it remembers: long enough to see several answers end, short enough to see a replica slow down. */
  memoryUs: 20_000_000,
  /** Busy time that the prior is worth: before a cold pool the first answers end only after some seconds. */
  priorUs: 5_000_000,
  /**
   * Never believed to be faster than this, per replica. An engine that has just filled up takes prompts faster than it
   * can go on doing: it borrows from the answers that it has begun and must still write, and pays back ten seconds later.
   */
  perReplicaUsMax: Number.POSITIVE_INFINITY,
}

export type DrainRateOptions = typeof DRAIN_RATE_DEFAULTS

export class DrainRate {
  readonly #options: DrainRateOptions
  /** Per replica. */
  #cost: number
  #busyUs: number
  #lastAt: Instant = 0

  constructor(priorPerReplicaUs: number, options: Partial<DrainRateOptions> = {}) {
    this.#options = { ...DRAIN_RATE_DEFAULTS, ...options }
    this.#busyUs = this.#options.priorUs
    this.#cost = priorPerReplicaUs * this.#options.priorUs
  }

  /** Work began to wait: from here on, time counts. */
  startedWaiting(now: Instant): void {
    this.#lastAt = now
  }

  /** Some work was completed while other work was waiting all the time since the last call. */
  observe(now: Instant, done: { readonly cost: number; readonly replicaCount: number }): void {
    const elapsedUs = Math.max(0, now - this.#lastAt)
    this.#lastAt = Math.max(this.#lastAt, now)
    if (done.replicaCount === 0) return
    // A quotient instead of e^(−t/τ): the same on every processor (see base/ewma.ts).
    const kept = this.#options.memoryUs / (this.#options.memoryUs + elapsedUs)
    this.#cost = this.#cost * kept + done.cost / done.replicaCount
    this.#busyUs = this.#busyUs * kept + elapsedUs
  }

  /** Weighted tokens per microsecond over so many replicas. */
  perUs(now: Instant, replicaCount: number, isWaiting: boolean): number {
    const silentUs = isWaiting ? Math.max(0, now - this.#lastAt) : 0
    return replicaCount * Math.min(this.#options.perReplicaUsMax, this.#cost / (this.#busyUs + silentUs))
  }
}
