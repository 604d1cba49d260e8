import { Ewma } from '../../base/ewma.ts'

/**
 * By how much is the token estimate off for this model?
 *
 * Every tokenizer cuts text differently, and every chat template adds its own. Engines report the true prompt length
 * with each answer, so per model we keep Σ reported ÷ Σ estimated, with a memory of ten minutes of traffic, and
 * multiply estimates by it. It starts at 1 with the weight of a few prompts, so that one odd prompt does not swing it.
 * What remains wrong after the correction is metered: the mean signed error (bias) and the mean absolute error, both
 * relative to the truth. In simulation, where segments come from a trace and are exact, it stays at 1.
 *
 * It does not learn per tenant: a tenant who writes Thai to a model tuned on English text is seen in the error, not
 * hidden in a ratio that nobody can explain.
 *
 * Example: estimates 1,000 and 2,000, reported 1,100 and 2,200 → the ratio moves from 1 towards 1.1; the next
 * estimate of 500 becomes about 530 at first, 550 after a few dozen.
 */
export const TOKEN_RATIO_DEFAULTS = {
  /** Tokens' worth of belief in ratio 1 at the start: about four average chats (Azure's P50 prompt is 1,020). */
  priorTokens: 4_000,
  /** Reported tokens after which old ones count half: some hundreds of prompts. */
  memoryTokens: 500_000,
  /** A ratio beyond these is a broken report (a cached prompt reported as its rest, say), not a tokenizer. */
  ratioMin: 0.25,
  ratioMax: 4,
  /** Memory of the metered error: ten minutes, so that a deployment's effect shows within one. */
  errorMemoryUs: 600_000_000,
}

export type TokenRatioOptions = typeof TOKEN_RATIO_DEFAULTS

export interface TokenRatioView {
  readonly ratio: number
  readonly samples: number
  /** (predicted − reported) ÷ reported, averaged; positive = we think prompts longer than they are. */
  readonly errorMean: number | undefined
  readonly errorAbsoluteMean: number | undefined
}

export class TokenRatio {
  readonly #options: TokenRatioOptions
  readonly #error: Ewma
  readonly #errorAbsolute: Ewma
  #estimated: number
  #reported: number
  #samples = 0

  constructor(options: Partial<TokenRatioOptions> = {}) {
    this.#options = { ...TOKEN_RATIO_DEFAULTS, ...options }
    this.#estimated = this.#options.priorTokens
    this.#reported = this.#options.priorTokens
    this.#error = new Ewma(this.#options.errorMemoryUs)
    this.#errorAbsolute = new Ewma(this.#options.errorMemoryUs)
  }

  get ratio(): number {
    return this.#reported / this.#estimated
  }

  /** Whole tokens, rounded up: planning rather thinks too long than too short. */
  correct(estimatedTokens: number): number {
    return Math.ceil(estimatedTokens * this.ratio)
  }

  /** `estimatedTokens` is the raw estimate of exactly what was sent, before any correction. */
  observe(now: number, seen: { readonly estimatedTokens: number; readonly reportedTokens: number }): void {
    const { estimatedTokens, reportedTokens } = seen
    if (estimatedTokens <= 0 || reportedTokens <= 0) return
    const error = (this.correct(estimatedTokens) - reportedTokens) / reportedTokens
    this.#error.observe(now, error)
    this.#errorAbsolute.observe(now, Math.abs(error))
    this.#samples++
    const { ratioMin, ratioMax, memoryTokens } = this.#options
    this.#estimated += estimatedTokens
    this.#reported += Math.min(ratioMax * estimatedTokens, Math.max(ratioMin * estimatedTokens, reportedTokens))
    if (this.#estimated >= 2 * memoryTokens) {
      this.#estimated /= 2
      this.#reported /= 2
    }
  }

  view(): TokenRatioView {
    return {
      ratio: this.ratio,
      samples: this.#samples,
      errorMean: this.#error.view(),
      errorAbsoluteMean: this.#errorAbsolute.view(),
    }
  }
}
