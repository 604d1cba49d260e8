import type { Instant } from '../../base/clock.ts'
import { steadyLog2, steadyPow2 } from '../../base/steady-log.ts'

/**
 * Is this still the engine that we know?
 *
 * Measured ÷ expected scatters around 1. When its recent mean, in logarithms, is off by a factor, and over enough rows,
 * it is not scatter: the engine is slower or faster than it was, by that factor. One row says no more than `rowFactorMax`,
 * so a few wild ones are no change; an engine that has changed by more is found in two or three goes.
 *
 * Example: factor 1.3, 24 rows, 2 at most. Rows of 1.8, 1.9, 1.7 … : after the 24th, another engine, 1.8 times as slow.
 */
export interface ChangeWatchOptions {
  readonly factor: number
  readonly rows: number
  readonly rowFactorMax: number
}

/** Microseconds over which rows are averaged; longer where `rows` of them take longer to come. */
const RECENT_US = 3_000_000

export class ChangeWatch {
  readonly #options: ChangeWatchOptions
  readonly #threshold: number
  #rows = 0
  #sum = 0
  #weight = 0
  #at: Instant = 0

  constructor(options: ChangeWatchOptions) {
    this.#options = options
    this.#threshold = steadyLog2(options.factor)
  }

  /** Returns the factor by which the engine has changed, when it has. */
  observe(now: Instant, ratio: number, weight: number): number | undefined {
    const { rowFactorMax, rows } = this.#options
    // An engine that answers once in two seconds has a row or two in `RECENT_US`: those alone would be scatter.
    const kept = Math.max(RECENT_US / (RECENT_US + Math.max(0, now - this.#at)), rows / (rows + 1))
    this.#at = now
    this.#sum = this.#sum * kept + weight * steadyLog2(Math.min(rowFactorMax, Math.max(1 / rowFactorMax, ratio)))
    this.#weight = this.#weight * kept + weight
    this.#rows++
    const mean = this.#weight > 0 ? this.#sum / this.#weight : 0
    if (this.#rows < rows || Math.abs(mean) < this.#threshold) return undefined
    this.#rows = 0
    this.#sum = 0
    this.#weight = 0
    return steadyPow2(mean)
  }
}
