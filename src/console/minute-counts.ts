import { type Instant, US_PER_S } from '../base/clock.ts'

/** Figures of one party that the console shows, of the last minute. */
export const COUNTED = ['arrived', 'completed', 'refused', 'failed', 'kept', 'broken', 'degraded', 'tokens'] as const
export type Counted = (typeof COUNTED)[number]

const SLOTS = 12
const SLOT_US = (60 * US_PER_S) / SLOTS
const WIDTH = COUNTED.length

/** Counts in twelve slots of five seconds: a minute that slides, in a hundred numbers. */
export class MinuteCounts {
  readonly #slots = new Float64Array(SLOTS * WIDTH)
  #slot = 0

  add(at: Instant, what: Counted, by = 1): void {
    this.#turnTo(at)
    const place = (this.#slot % SLOTS) * WIDTH + COUNTED.indexOf(what)
    this.#slots[place] = (this.#slots[place] as number) + by
  }

  /** Sums of the last minute, in the order of COUNTED. */
  view(now: Instant): number[] {
    this.#turnTo(now)
    const sums = Array.from({ length: WIDTH }, () => 0)
    for (let i = 0; i < this.#slots.length; i++)
      sums[i % WIDTH] = (sums[i % WIDTH] as number) + (this.#slots[i] as number)
    return sums
  }

  #turnTo(at: Instant): void {
    const slot = Math.floor(at / SLOT_US)
    if (slot <= this.#slot) return
    const from = Math.max(this.#slot + 1, slot - SLOTS + 1)
    for (let each = from; each <= slot; each++) {
      const start = (each % SLOTS) * WIDTH
      this.#slots.fill(0, start, start + WIDTH)
    }
    this.#slot = slot
  }
}
