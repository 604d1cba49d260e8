import type { Instant } from '../../base/clock.ts'
import type { EngineSpeed } from '../../domain/engine-speed.ts'
import type { Load } from '../limits/ledger.ts'
import { type Steps, timesUnderLoad } from './times-under-load.ts'

/**
 * How fast are this pool's engines just now?
 *
 * An engine's step-time model says how fast it is alone; how fast it is in company depends on who is there. So the
 * model is a prior, and experience corrects it: each attempt says how long its first token took and how far apart the
 * others came. First tokens are fitted as `a + b · expected` by least squares with forgetting. Where step times are
 * known, *expected* is what they say of the load that the attempt met (`times-under-load.ts`), and a prediction is made
 * for the load of this moment; else it is the time alone, and `a` and `b` carry what company costs.
 *
 * What is known fades with time as well as with samples. A pool that was swamped and now refuses nearly everything sees
 * few samples: by samples alone it would believe itself swamped for minutes, beside idle engines.
 *
 * Deliberately not: no queueing here (that is `admission/predicted-wait.ts`), and no single replicas.
 *
 * Law L10: it learns from what has ended only. Example: alone, 1,000 tokens take 40 ms; attempts of 10 ms alone took
 * 35 ms, attempts of 80 ms alone took 120 ms: b = 85 ÷ 70 ≈ 1.2, a ≈ 23 ms, so the 1,000 tokens now take 71 ms.
 */
export const OBSERVED_SPEED_DEFAULTS = {
  /** Attempts that it remembers: at twenty a second, the last few seconds of a pool. */
  memorySamples: 64,
  /** And for how long, in microseconds: a pause of this length takes half of the weight of all that was before it. */
  memoryUs: 2_000_000,
  /** Attempts that the prior is worth. */
  priorSamples: 4,
  /** Company makes an engine this much slower per token of prefill at most; beyond it the sample is a fault. */
  slopeMax: 20,
  /**
   * The same where step times are known: company is in what is expected already, so more than this is a fault. A twin that
   * has just learned that it was off by a factor would otherwise be corrected twice.
   */
  slopeUnderLoadMax: 4,
  /**
   * And a first token that took more than this many times what was expected, and half a second, counts as if it had taken
   * that: a stall. Two dozen of 20 s would otherwise make an engine that is well again look swamped for ten seconds.
   */
  stallFactor: 16,
  stallUs: 500_000,
}

export class ObservedSpeed implements EngineSpeed {
  readonly shareUs?: NonNullable<EngineSpeed['shareUs']>
  readonly #alone: EngineSpeed
  readonly #steps: Steps | undefined
  readonly #options: typeof OBSERVED_SPEED_DEFAULTS
  readonly #keep: number
  /** What the prior would have shown: a first token of ordinary length that took as long as expected. */
  readonly #typicalUs: number
  #prefillAt: Instant = 0
  #weight = 0
  #sumX = 0
  #sumY = 0
  #sumXX = 0
  #sumXY = 0
  #tokensAt: Instant = 0
  #tokenRatioSum = 0
  #tokenRatioWeight = 0

  constructor(alone: EngineSpeed, steps?: Steps, options = OBSERVED_SPEED_DEFAULTS) {
    this.#alone = alone
    this.#steps = steps
    this.#options = options
    if (alone.shareUs !== undefined) this.shareUs = alone.shareUs
    this.#keep = options.memorySamples / (options.memorySamples + 1)
    this.#typicalUs = alone.prefillUs(1_000, 0)
  }

  prefillUs(uncachedTokens: number, cachedTokens: number): number {
    return this.#corrected(this.#alone.prefillUs(uncachedTokens, cachedTokens))
  }

  tokenUs(contextTokens: number): number {
    const { priorSamples } = this.#options
    const ratio = (this.#tokenRatioSum + priorSamples) / (this.#tokenRatioWeight + priorSamples)
    return Math.round(this.#alone.tokenUs(contextTokens) * ratio)
  }

  /** The speed of a replica with this load. */
  under(load: Load): EngineSpeed {
    const steps = this.#steps
    if (steps === undefined) return this
    return {
      ...(this.shareUs !== undefined && { shareUs: this.shareUs }),
      tokenUs: (contextTokens) => this.tokenUs(contextTokens),
      prefillUs: (uncachedTokens, cachedTokens) => {
        const own = { promptTokens: uncachedTokens + cachedTokens, cachedTokens, plannedTokens: undefined }
        return this.#corrected(timesUnderLoad(this.#alone, steps, load, own).ttftUs)
      },
    }
  }

  /** An attempt's first token came `tookUs` after its turn; `expectedUs` is what its replica's load made likely. */
  observePrefill(
    now: Instant,
    seen: {
      readonly uncachedTokens: number
      readonly cachedTokens: number
      readonly tookUs: number
      readonly expectedUs?: number | undefined
    },
  ): void {
    const x = seen.expectedUs ?? this.#alone.prefillUs(seen.uncachedTokens, seen.cachedTokens)
    const { stallFactor, stallUs } = this.#options
    const tookUs = this.#steps === undefined ? seen.tookUs : Math.min(seen.tookUs, stallFactor * x + stallUs)
    const keep = this.#keepSince(now, this.#prefillAt)
    this.#prefillAt = now
    this.#weight = this.#weight * keep + 1
    this.#sumX = this.#sumX * keep + x
    this.#sumY = this.#sumY * keep + tookUs
    this.#sumXX = this.#sumXX * keep + x * x
    this.#sumXY = this.#sumXY * keep + x * tookUs
  }

  /** An answer's tokens came `gapUs` apart on the average. */
  observeTokens(now: Instant, seen: { readonly contextTokens: number; readonly gapUs: number }): void {
    const keep = this.#keepSince(now, this.#tokensAt)
    this.#tokensAt = now
    this.#tokenRatioSum = this.#tokenRatioSum * keep + seen.gapUs / Math.max(1, this.#alone.tokenUs(seen.contextTokens))
    this.#tokenRatioWeight = this.#tokenRatioWeight * keep + 1
  }

  /** A quotient instead of e^(−t/τ): the same on every processor (see base/ewma.ts). */
  #keepSince(now: Instant, at: Instant): number {
    const { memoryUs } = this.#options
    return (this.#keep * memoryUs) / (memoryUs + Math.max(0, now - at))
  }

  #corrected(expectedUs: number): number {
    const { priorSamples, slopeUnderLoadMax } = this.#options
    const slopeMax = this.#steps === undefined ? this.#options.slopeMax : slopeUnderLoadMax
    const priorUs = this.#typicalUs
    const weight = this.#weight + priorSamples
    const meanX = (this.#sumX + priorUs * priorSamples) / weight
    const meanY = (this.#sumY + priorUs * priorSamples) / weight
    const priorSquare = priorUs * priorUs * priorSamples
    const varianceX = (this.#sumXX + priorSquare) / weight - meanX * meanX
    const covariance = (this.#sumXY + priorSquare) / weight - meanX * meanY
    // When all prompts were alike the slope is anybody's guess: then it is the model's own.
    const isAlike = varianceX < meanX * meanX * 0.01
    const slope = isAlike ? 1 : Math.min(slopeMax, Math.max(0, covariance / varianceX))
    return Math.max(expectedUs / 2, Math.round(meanY + slope * (expectedUs - meanX)))
  }
}
