/**
 * Should whoever is about to have its turn be dropped instead?
 *
 * Classic CoDel (Nichols and Jacobson, 2012; RFC 8289), asked at every turn: when everybody who left the queue has
 * waited longer than `target` for a whole `interval`, one is dropped, and then again after interval ÷ √n, until
 * somebody has waited less. It knows no deadlines, no sizes and no tenants: what a queue can do for itself, and so the
 * yardstick for admission that predicts (`simulate --compare codel`).
 *
 * Worked example: target 5 ms, interval 100 ms, everybody waits 50 ms from 0 on. Dropped: the first after 100 ms, the
 * next after another 100 ms, then after 71, 58, 50 … ms, until the queue is short.
 */
export interface CodelOptions {
  /** A wait below this is no standing queue. */
  readonly targetUs: number
  /** How long it must stand before anybody is dropped. */
  readonly intervalUs: number
}

/** The RFC's own (§4.2, §4.3). */
export const CODEL_DEFAULTS: CodelOptions = { targetUs: 5_000, intervalUs: 100_000 }

/** Dropping that ended fewer intervals ago than this begins again near the rate that was needed (RFC 8289, §5.5). */
const RECENT_INTERVALS = 16

export class Codel {
  readonly #options: CodelOptions
  /** When the wait will have been above the target for an interval; undefined while it is below. */
  #aboveUntil: number | undefined
  #isDropping = false
  #dropNextAt = 0
  #count = 0

  constructor(options: CodelOptions = CODEL_DEFAULTS) {
    this.#options = options
  }

  shouldDrop(now: number, waitedUs: number): boolean {
    const { intervalUs, targetUs } = this.#options
    if (waitedUs < targetUs) {
      this.#aboveUntil = undefined
      this.#isDropping = false
      return false
    }
    this.#aboveUntil ??= now + intervalUs
    if (now < this.#aboveUntil) return false
    if (!this.#isDropping) {
      this.#isDropping = true
      const isRecent = now - this.#dropNextAt < RECENT_INTERVALS * intervalUs
      this.#count = isRecent && this.#count > 2 ? this.#count - 2 : 1
      this.#dropNextAt = now + intervalUs / Math.sqrt(this.#count)
      return true
    }
    if (now < this.#dropNextAt) return false
    this.#count++
    this.#dropNextAt += intervalUs / Math.sqrt(this.#count)
    return true
  }
}
