import type { Instant } from '../../base/clock.ts'

/**
 * How often does a turn end here?
 *
 * Where every turn that may run does run, the next begins when one ends, however fast the engines could work off what
 * waits. So the ends are counted, as a rate that forgets (`base/ewma.ts` says why it divides).
 *
 * Silence before a burst says nothing: turns that began together end together, seconds later. What is known of their
 * lengths stands in for it (`perUs`), at a quarter of its worth: lengths vary, and the longest are there longest.
 *
 * Example: 30 turns end in a second. After a pause of 3 s it says 15, after one of 27 s 3; but if 256 run that last 8 s
 * each, 8.
 */
export const TURN_ENDS_DEFAULTS = {
  /** Microseconds: shorter than an answer lasts, so that a stretch of long ones shows; shorter still, and it is noise. */
  memoryUs: 3_000_000,
  /** Share of the rate by predicted lengths that is believed whatever was seen. */
  predictedRatio: 0.25,
} as const

/** Turns that run, and how long one of them is predicted to last. */
export interface LastingTurns {
  readonly running: number
  readonly lastsUs: number
}

export class TurnEnds {
  readonly #memoryUs: number
  readonly #predictedRatio: number
  #perUs = 0
  #at: Instant = 0

  constructor(options: { readonly memoryUs: number; readonly predictedRatio: number } = TURN_ENDS_DEFAULTS) {
    this.#memoryUs = options.memoryUs
    this.#predictedRatio = options.predictedRatio
  }

  observe(now: Instant): void {
    this.#perUs = this.#seenPerUs(now) + 1 / this.#memoryUs
    this.#at = Math.max(this.#at, now)
  }

  /** Turns that end in a microsecond. */
  perUs(now: Instant, { running, lastsUs }: LastingTurns): number {
    return Math.max(this.#seenPerUs(now), (this.#predictedRatio * running) / Math.max(1, lastsUs))
  }

  #seenPerUs(now: Instant): number {
    return (this.#perUs * this.#memoryUs) / (this.#memoryUs + Math.max(0, now - this.#at))
  }
}
