import { type Instant, US_PER_S } from '../base/clock.ts'

/**
 * How much a second, over the last minute? Sums in a ring of slots, by the time of the entries. A counter and Prometheus'
 * `rate` say the same; this says it without a query, and falls to 0 within a minute when nothing comes any more.
 *
 * Bound: twelve numbers. What is older than a minute is gone; an entry that comes late counts as new.
 * Example: 6,000 tokens at second 3 and nothing else are 100 a second until second 60, and 0 from second 65 on.
 */
export class MinuteRate {
  readonly #sums = new Float64Array(SLOTS)
  #slot = 0

  add(at: Instant, amount: number): void {
    this.#moveTo(at)
    this.#sums[this.#slot % SLOTS]! += amount
  }

  perSecond(now: Instant): number {
    this.#moveTo(now)
    return this.#sums.reduce((sum, slot) => sum + slot, 0) / MINUTE_S
  }

  #moveTo(at: Instant): void {
    const slot = Math.floor(at / SLOT_US)
    if (slot <= this.#slot) return
    const from = Math.max(this.#slot + 1, slot - SLOTS + 1)
    for (let each = from; each <= slot; each++) this.#sums[each % SLOTS] = 0
    this.#slot = slot
  }
}

/** Long enough to be calm at a request a second, short enough to follow a spike. */
const MINUTE_S = 60
/** A twelfth of the minute is the error at its edge. */
const SLOTS = 12
const SLOT_US = (MINUTE_S / SLOTS) * US_PER_S
