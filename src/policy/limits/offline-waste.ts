/**
 * How much of what engines do for offline requests may be thrown away?
 *
 * A meter of offline tokens: those of answers that were finished, and those of attempts that were called off. What was done
 * earns credit, what is thrown away uses it up, so that wasted ÷ (done + wasted) never exceeds the ratio, at no instant.
 * The credit has a bound: after a quiet week a busy minute must not throw away a tenth of the week. Three numbers.
 *
 * Worked example: ratio 0.1. 9,000 tokens done earn a credit of 900; an attempt of 1,000 tokens costs 900 of credit. Then
 * 1,000 of 10,000 tokens are wasted, and no further attempt may go.
 */
export const OFFLINE_WASTE_DEFAULTS = {
  /** Share of offline tokens that may be wasted; 0: none are. */
  ratioMax: 0.1,
  /** Tokens that may be wasted in one go, whatever was done before. */
  burstTokens: 1_000_000,
} as const

export class OfflineWaste {
  readonly #ratioMax: number
  readonly #creditMax: number
  #credit = 0
  #doneTokens = 0
  #wastedTokens = 0

  constructor(options: { readonly ratioMax?: number; readonly burstTokens?: number } = {}) {
    const { ratioMax, burstTokens } = { ...OFFLINE_WASTE_DEFAULTS, ...options }
    this.#ratioMax = ratioMax
    this.#creditMax = burstTokens * (1 - ratioMax)
  }

  /** Tokens that may be wasted now. */
  get tokensMax(): number {
    if (this.#ratioMax === 0) return 0
    return this.#ratioMax === 1 ? Number.POSITIVE_INFINITY : this.#credit / (1 - this.#ratioMax)
  }

  /** An offline answer was finished. */
  done(tokens: number): void {
    this.#doneTokens += tokens
    this.#credit = Math.min(this.#creditMax, this.#credit + this.#ratioMax * tokens)
  }

  /** An attempt is called off, which has used this many tokens at most. */
  waste(tokens: number): void {
    this.#wastedTokens += tokens
    this.#credit = Math.max(0, this.#credit - (1 - this.#ratioMax) * tokens)
  }

  view(): { readonly doneTokens: number; readonly wastedTokens: number } {
    return { doneTokens: this.#doneTokens, wastedTokens: this.#wastedTokens }
  }
}
