import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'

/**
 * Which share of a pool's requests were served as promised, of late? Answers in time count as kept; late ones, refusals
 * that are the platform's and answers that broke off do not. What a client called off or did wrong counts in neither.
 *
 * Example: of the last ten requests nine were in time and one was refused as too late: 0.9.
 */
const MEMORY_US = 60_000_000

export class Attainment {
  readonly #kept = new Ewma(MEMORY_US)

  observe(now: Instant, isKept: boolean): void {
    this.#kept.observe(now, isKept ? 1 : 0)
  }

  /** 1 where nothing was asked yet: nobody was disappointed. */
  get ratio(): number {
    return this.#kept.view() ?? 1
  }
}
