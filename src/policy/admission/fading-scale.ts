import type { Instant } from '../../base/clock.ts'

/**
 * How do thousands of rates fade without touching them?
 *
 * By letting the present grow instead: what is added now counts `now` times its amount, `now` doubles every epoch, and
 * whoever reads divides by it (forward decay, Cormode et al., 2009). Sums of such amounts in a tree stay right without
 * an update. Doubling is exact in floating point, so it is the same on every processor. Before the numbers grow too
 * large the scale starts over, and everything kept in it is multiplied by the factor that `advance` returns.
 *
 * Example: epochs of 10 s. A cost of 100 in the first epoch counts 100, another in the second 200; read in the second,
 * (100 + 200) ÷ 2 = 150: the older one counts half.
 */

/** Half of what is known fades in ten seconds: long enough that one burst is not taken for a habit. */
export const EPOCH_US = 10_000_000

/** 2^400 leaves the doubles room on both sides; at ten seconds an epoch that is more than an hour. */
const EPOCHS_MAX = 400

export class FadingScale {
  #epoch = 0
  #epochsSinceStart = 0
  #now = 1

  /** The weight of what is added now. */
  get now(): number {
    return this.#now
  }

  /** Returns a factor when everything that was kept must be multiplied by it. */
  advance(now: Instant): number | undefined {
    const epoch = Math.floor(now / EPOCH_US)
    const passed = epoch - this.#epoch
    if (passed <= 0) return undefined
    this.#epoch = epoch
    this.#epochsSinceStart += passed
    if (this.#epochsSinceStart <= EPOCHS_MAX) {
      for (let i = 0; i < passed; i++) this.#now *= 2
      return undefined
    }
    let factor = 1 / this.#now
    for (let i = 0; i < Math.min(passed, EPOCHS_MAX); i++) factor /= 2
    this.#epochsSinceStart = 0
    this.#now = 1
    return factor
  }

  /** Turns a sum into a rate: at a steady rate, the epoch under way and the halves of those before hold so much. */
  perUs(now: Instant): number {
    const elapsedUs = Math.min(EPOCH_US, Math.max(0, now - this.#epoch * EPOCH_US))
    return 1 / (this.#now * (EPOCH_US + elapsedUs))
  }
}
