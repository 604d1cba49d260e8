import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'
import { steadyLog2, steadyPow2 } from '../../base/steady-log.ts'

/**
 * By what factor are predictions off, on the mean of late?
 *
 * The mean of the absolute logarithms of actual ÷ expected, each cut at a bound (a winsorised mean; Tukey, 1962), as a
 * factor again. An actual time near zero is no larger an error than one that is near infinity, and neither says more
 * than the bound. A model that is wrong by the bound or more has the bound as its error, whatever the rows.
 *
 * Example, with a bound of 2: ninety rows off by 1.1 and ten a thousand times too short are off by
 * 2^(0.9 · log2 1.1 + 0.1 · 1) = 1.17, an error of 0.17.
 */
export class MeanError {
  readonly #logs: Ewma
  readonly #logMax: number

  constructor(memoryUs: number, factorMax: number) {
    this.#logs = new Ewma(memoryUs)
    this.#logMax = steadyLog2(factorMax)
  }

  /** `ratio` is actual ÷ expected, above zero. */
  observe(now: Instant, ratio: number, weight: number): void {
    const log = Math.abs(steadyLog2(Math.min(RATIO_MAX, Math.max(1 / RATIO_MAX, ratio))))
    this.#logs.observe(now, Math.min(this.#logMax, log), weight)
  }

  /** 0.2 is off by a factor of 1.2, either way; undefined before the first row. */
  view(): number | undefined {
    const log = this.#logs.view()
    return log === undefined ? undefined : steadyPow2(log) - 1
  }
}

/** Beyond every bound, and within what a logarithm is taken of. */
const RATIO_MAX = 1_024
