import type { EngineSpeed } from '../../domain/engine-speed.ts'

/**
 * How fast are this pool's engines just now?
 *
 * An engine's step-time model says how fast it is alone; how fast it is in company depends on who is there. So the
 * model is a prior, and experience corrects it: each finished attempt says how long its first token took and how far
 * apart the others came. First tokens are fitted as `a + b · alone` by least squares with forgetting: `a` is what a
 * short prompt waits for the step that is running, `b` what a long one loses by sharing steps with others. For an
 * engine that tells nothing of itself the prior is a guess, and the fit soon is not.
 *
 * Deliberately not: no queueing here (that is `admission/predicted-wait.ts`), and no single replicas.
 *
 * Law L10: it learns from what has ended only. Example: alone, 1,000 tokens take 40 ms; attempts of 10 ms alone took
 * 35 ms, attempts of 80 ms alone took 120 ms: b = 85 ÷ 70 ≈ 1.2, a ≈ 23 ms, so the 1,000 tokens now take 72 ms.
 */
export const OBSERVED_SPEED_DEFAULTS = {
  /** Attempts that it remembers: at twenty a second, the last few seconds of a pool. */
  memorySamples: 64,
  /** Attempts that the prior is worth. */
  priorSamples: 4,
  /** Company makes an engine this much slower per token of prefill at most; beyond it the sample is a fault. */
  slopeMax: 20,
}

export class ObservedSpeed implements EngineSpeed {
  readonly shareUs?: NonNullable<EngineSpeed['shareUs']>
  readonly #alone: EngineSpeed
  readonly #keep: number
  #weight: number
  #sumX = 0
  #sumY = 0
  #sumXX = 0
  #sumXY = 0
  #tokenRatioSum: number
  #tokenRatioWeight: number

  constructor(alone: EngineSpeed, options = OBSERVED_SPEED_DEFAULTS) {
    this.#alone = alone
    if (alone.shareUs !== undefined) this.shareUs = alone.shareUs
    this.#keep = options.memorySamples / (options.memorySamples + 1)
    this.#weight = options.priorSamples
    this.#tokenRatioSum = options.priorSamples
    this.#tokenRatioWeight = options.priorSamples
    const typicalUs = alone.prefillUs(1_000, 0)
    this.#sumX = typicalUs * this.#weight
    this.#sumY = typicalUs * this.#weight
    this.#sumXX = typicalUs * typicalUs * this.#weight
    this.#sumXY = this.#sumXX
  }

  prefillUs(uncachedTokens: number, cachedTokens: number): number {
    const aloneUs = this.#alone.prefillUs(uncachedTokens, cachedTokens)
    const meanX = this.#sumX / this.#weight
    const slope = this.#slope(meanX)
    return Math.max(aloneUs / 2, Math.round(this.#sumY / this.#weight + slope * (aloneUs - meanX)))
  }

  tokenUs(contextTokens: number): number {
    return Math.round((this.#alone.tokenUs(contextTokens) * this.#tokenRatioSum) / this.#tokenRatioWeight)
  }

  /** An attempt's first token came `tookUs` after its turn. */
  observePrefill(seen: {
    readonly uncachedTokens: number
    readonly cachedTokens: number
    readonly tookUs: number
  }): void {
    const x = this.#alone.prefillUs(seen.uncachedTokens, seen.cachedTokens)
    this.#weight = this.#weight * this.#keep + 1
    this.#sumX = this.#sumX * this.#keep + x
    this.#sumY = this.#sumY * this.#keep + seen.tookUs
    this.#sumXX = this.#sumXX * this.#keep + x * x
    this.#sumXY = this.#sumXY * this.#keep + x * seen.tookUs
  }

  /** An answer's tokens came `gapUs` apart on the average. */
  observeTokens(seen: { readonly contextTokens: number; readonly gapUs: number }): void {
    this.#tokenRatioSum =
      this.#tokenRatioSum * this.#keep + seen.gapUs / Math.max(1, this.#alone.tokenUs(seen.contextTokens))
    this.#tokenRatioWeight = this.#tokenRatioWeight * this.#keep + 1
  }

  /** When all prompts were alike the slope is anybody's guess: then it is the model's own. */
  #slope(meanX: number): number {
    const varianceX = this.#sumXX / this.#weight - meanX * meanX
    if (varianceX < meanX * meanX * 0.01) return 1
    const covariance = this.#sumXY / this.#weight - meanX * (this.#sumY / this.#weight)
    return Math.min(OBSERVED_SPEED_DEFAULTS.slopeMax, Math.max(0, covariance / varianceX))
  }
}
