import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'

/**
 * Is this still the engine that we know?
 *
 * Measured ÷ expected scatters around 1. When its recent mean, in logarithms, is off by a factor, and over enough rows,
 * it is not scatter: the engine is slower or faster than it was, by that factor.
 *
 * Example: factor 1.3, 24 rows. Rows of 2, 2.1, 1.9 … : after the 24th, another engine, about 2 times as slow.
 */
export class ChangeWatch {
  readonly #factor: number
  readonly #rowsMin: number
  #recent = new Ewma(RECENT_US)
  #rows = 0

  constructor({ factor, rows }: { readonly factor: number; readonly rows: number }) {
    this.#factor = factor
    this.#rowsMin = rows
  }

  /** Returns the factor by which the engine has changed, when it has. */
  observe(now: Instant, ratio: number, weight: number): number | undefined {
    this.#recent.observe(now, Math.log2(Math.min(RATIO_MAX, Math.max(1 / RATIO_MAX, ratio))), weight)
    this.#rows++
    const mean = this.#recent.view() ?? 0
    if (this.#rows < this.#rowsMin || Math.abs(mean) < Math.log2(this.#factor)) return undefined
    this.#recent = new Ewma(RECENT_US)
    this.#rows = 0
    return 2 ** mean
  }
}

/** Microseconds over which rows are averaged. */
const RECENT_US = 3_000_000
/** One row says no more than this. */
const RATIO_MAX = 16
