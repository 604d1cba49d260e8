import { US_PER_S } from '../base/clock.ts'

/**
 * Delays forgetting the counters of removed things, because the last scrape must see their last values. Counters are
 * forgotten after `GRACE_US` by the entries' own time, or sooner when there are too many, so that a fleet that changes
 * all day does not fill the page. What comes back before that counts on where it stopped.
 */
const GRACE_US = 600 * US_PER_S

/** Labels that linger at once: with four endings each, a third of the series of one metric. */
const LINGERING_MAX = 100

export class Lingering {
  readonly #goneAt = new Map<string, number>()
  readonly #forget: (label: string) => void

  constructor(forget: (label: string) => void) {
    this.#forget = forget
  }

  get size(): number {
    return this.#goneAt.size
  }

  gone(label: string, at: number): void {
    this.#goneAt.delete(label)
    this.#goneAt.set(label, at)
    for (const [oldest, goneAt] of this.#goneAt) {
      if (at - goneAt < GRACE_US && this.#goneAt.size <= LINGERING_MAX) return
      this.#goneAt.delete(oldest)
      this.#forget(oldest)
    }
  }

  back(label: string): void {
    this.#goneAt.delete(label)
  }
}
