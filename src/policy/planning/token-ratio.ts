import { Ewma } from '../../base/ewma.ts'

/**
 * By how much is the token estimate off for one tenant's prompts to one model?
 *
 * Every tokenizer cuts text differently, every chat template adds its own, and every tenant writes in its own way.
 * Engines report the true prompt length with each answer, so we keep Σ reported ÷ Σ estimated, with a memory of some
 * hundreds of prompts, and multiply estimates by it. A ratio starts at what other tenants' prompts are like
 * (`tenant-ratios.ts`) with the weight of a few prompts, so that one odd prompt does not swing it. What remains wrong
 * after the correction is metered: the mean signed error (bias) and the mean absolute error, both relative to the truth.
 *
 * It does not refuse anything: a prompt is never too long because of a ratio (`make-plan.ts`).
 *
 * Example: estimates 1,000 and 2,000, reported 1,100 and 2,200 → the ratio moves from 1 towards 1.1; the next
 * estimate of 500 becomes about 530 at first, 550 after a few dozen.
 */
export const TOKEN_RATIO_DEFAULTS = {
  /** Where a ratio starts: tokens of the model's tokenizer for one estimated token. */
  startRatio: 1,
  /** Tokens' worth of belief in the start: about four average chats (Azure's P50 prompt is 1,020). */
  priorTokens: 4_000,
  /** Reported tokens after which old ones count half: some hundreds of prompts. */
  memoryTokens: 500_000,
  /** A ratio below this is a broken report (a cached prompt reported as its rest, say), not a tokenizer. */
  ratioMin: 0.25,
  /** Random letters, which the estimate takes for words, are six to seven times as many tokens as they look like. */
  ratioMax: 8,
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
    this.#reported = this.#options.priorTokens * this.#options.startRatio
    this.#error = new Ewma(this.#options.errorMemoryUs)
    this.#errorAbsolute = new Ewma(this.#options.errorMemoryUs)
  }

  get ratio(): number {
    return this.#reported / this.#estimated
  }

  /** True once more prompts than the start's weight were seen: before, the ratio is mostly what it was told. */
  get isSettled(): boolean {
    return this.#estimated >= 2 * this.#options.priorTokens
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
