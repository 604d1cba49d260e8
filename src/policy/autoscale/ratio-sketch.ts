/**
 * By how much was more asked for than was forecast, and what would it have cost to be late seldom?
 *
 * A histogram of asked ÷ forecast, in bins of 2.5 %, each forecast with its own size for a weight: planning for `factor`
 * times each of them would have cost `factor · Σ forecast`, and `Σ forecast · (ratio − factor)⁺` would have been late. That
 * is the newsvendor's question (Arrow, Harris and Marschak, 1951). Old forecasts fade with `memoryUs`.
 *
 * Bound: BINS numbers; a ratio beyond the last bin counts as the last one, about seven and a half.
 * Example: ratios of 0.9, 1.0, 1.1 and 1.5, equal weights: three in four are at most 1.1. With factor 1.3, 0.2 of 4.5 is late.
 */
const BINS = 120
const BIN_OF_ONE = 40
const BIN_WIDTH = 0.025
const RATIOS = Float64Array.from({ length: BINS }, (_, bin) => Math.exp((bin - BIN_OF_ONE) * BIN_WIDTH))

export class RatioSketch {
  readonly #memoryUs: number
  readonly #weights = new Float64Array(BINS)
  #forecast = 0
  #asked = 0

  constructor(memoryUs: number) {
    this.#memoryUs = memoryUs
  }

  /** All that was forecast, as far as it is remembered. */
  get forecast(): number {
    return this.#forecast
  }

  observe(asked: number, forecast: number, elapsedUs: number): void {
    const kept = Math.exp(-elapsedUs / this.#memoryUs)
    for (let bin = 0; bin < BINS; bin++) (this.#weights[bin] as number) *= kept
    const bin = BIN_OF_ONE + Math.round(Math.log(Math.max(asked / forecast, RATIOS[0] as number)) / BIN_WIDTH)
    ;(this.#weights[Math.min(BINS - 1, Math.max(0, bin))] as number) += forecast
    this.#forecast = this.#forecast * kept + forecast
    this.#asked = this.#asked * kept + asked
  }

  /** Of the forecast work, this share was asked for at most so many times over. */
  quantile(ratio: number): number {
    let above = (1 - ratio) * this.#forecast
    for (let bin = BINS - 1; bin >= 0; bin--) {
      above -= this.#weights[bin] as number
      if (above <= 0) return RATIOS[bin] as number
    }
    return 1
  }

  /** What would have been planned for each unit that was asked for, had no more than this share been late. */
  costAt(lateRatio: number): number {
    if (this.#asked <= 0) return Number.POSITIVE_INFINITY
    return (this.#factorAt(lateRatio * this.#asked) * this.#forecast) / this.#asked
  }

  #factorAt(lateMax: number): number {
    let [weight, asked] = [0, 0]
    for (let bin = BINS - 1; bin > 0; bin--) {
      weight += this.#weights[bin] as number
      asked += (this.#weights[bin] as number) * (RATIOS[bin] as number)
      // Planned up to the next bin's ratio, more than that would have been late: the factor lies between the two.
      if (asked - weight * (RATIOS[bin - 1] as number) > lateMax) return (asked - lateMax) / weight
    }
    return RATIOS[0] as number
  }
}
