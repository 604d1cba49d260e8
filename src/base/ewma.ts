/**
 * A mean that forgets: its memory is a time, not a number of samples, so it means the same whether samples come often
 * or seldom. After a pause of Δt what was known keeps the weight τ ÷ (τ + Δt), which for many small steps is e^(−t/τ).
 * We divide instead of calling `exp` because a quotient is the same bit for bit on every processor, and journals of
 * one seed must be. Empty, it says undefined rather than zero.
 */
export class Ewma {
  readonly #memoryUs: number
  #weightedSum = 0
  #weight = 0
  #at = 0

  constructor(memoryUs: number) {
    this.#memoryUs = memoryUs
  }

  observe(now: number, sample: number, weight = 1): void {
    const kept = this.#memoryUs / (this.#memoryUs + Math.max(0, now - this.#at))
    this.#weightedSum = this.#weightedSum * kept + sample * weight
    this.#weight = this.#weight * kept + weight
    this.#at = now
  }

  view(): number | undefined {
    return this.#weight > 0 ? this.#weightedSum / this.#weight : undefined
  }
}
