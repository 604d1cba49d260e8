import { US_PER_S } from '../base/clock.ts'

/**
 * When may the counters of something that is gone be forgotten? Not at once: the last scrape must see their last values.
 * After `GRACE_US` by the entries' own time, or sooner when too many have gone: a fleet that comes and goes all day
 * must not fill the page. What comes back meanwhile counts on where it stopped.
 */
const GRACE_US = 600 * US_PER_S

/** Labels that linger at once: with four endings each, a third of what one metric may have. */
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
