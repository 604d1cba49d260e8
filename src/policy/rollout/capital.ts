/**
 * How much would somebody have won by betting that this is worse?
 *
 * A test by betting (Shafer 2021; Waudby-Smith and Ramdas 2024). Observations y lie in [−1, 1]; the claim to be tested
 * is "on the average, given the past, y is at most 0". A gambler starts with 1 and stakes the share λ of his capital on
 * each y: capital × (1 + λ·y). If the claim is true no strategy expects to gain, so the chance that the capital *ever*
 * reaches K is at most 1/K (Ville 1939): we may look after every observation and stop whenever we like, and the error
 * is still bounded. We stake on several λ side by side and take the mean, so that a large difference is found with
 * large stakes and a small one with small ones.
 *
 * Only products of ordinary numbers: the same on every processor (law L9).
 *
 * Example: y = 1 fifteen times in a row. With λ = 0.98 the stake has grown to 1.98^15 ≈ 28,000; the mean over eight
 * stakes is over 3,500: at a bound of 1/2,800 the claim is rejected.
 */
const STAKES: readonly number[] = [0.98, 0.6, 0.35, 0.2, 0.1, 0.05, 0.025, 0.0125]

/** Beyond this more capital says nothing new; and it must stay a finite number. */
const CAPITAL_MAX = 1e200

/**
 * Where a capital stands, for other gateways. A gambler who bets at several tables with the same shares has in the end
 * the product of what he would have at each: the order of bets does not matter, so the parts of one stake multiply.
 */
export interface CapitalTally {
  readonly parts: readonly number[]
  readonly count: number
}

export class Capital {
  readonly #parts = new Float64Array(STAKES.length).fill(1)
  /** What others have won beside it, by stake; undefined while there are no others. */
  #beside: Float64Array | undefined
  #besideCount = 0
  #value = 1
  #highest = 1
  #count = 0

  /** What the gambler has now: large means that the claim is hard to believe. */
  get value(): number {
    return this.#value
  }

  /** The most that he ever had: what the bound speaks of. */
  get highest(): number {
    return this.#highest
  }

  get count(): number {
    return this.#count + this.#besideCount
  }

  observe(y: number): void {
    this.#count++
    const parts = this.#parts
    for (let i = 0; i < STAKES.length; i++)
      parts[i] = Math.min(CAPITAL_MAX, (parts[i] as number) * (1 + (STAKES[i] as number) * y))
    this.#settle()
  }

  /** What this one alone has seen. */
  tally(): CapitalTally {
    return { parts: [...this.#parts], count: this.#count }
  }

  /** What all others have seen, instead of what was told before. */
  putBeside(tallies: readonly CapitalTally[]): void {
    if (tallies.length === 0 && this.#beside === undefined) return
    const beside = new Float64Array(STAKES.length).fill(1)
    for (const { parts } of tallies)
      for (let i = 0; i < STAKES.length; i++) beside[i] = Math.min(CAPITAL_MAX, (beside[i] as number) * (parts[i] ?? 1))
    this.#beside = beside
    this.#besideCount = tallies.reduce((sum, { count }) => sum + count, 0)
    this.#settle()
  }

  #settle(): void {
    const beside = this.#beside
    let sum = 0
    for (let i = 0; i < STAKES.length; i++) {
      const part = this.#parts[i] as number
      sum += beside === undefined ? part : Math.min(CAPITAL_MAX, part * (beside[i] as number))
    }
    this.#value = sum / STAKES.length
    if (this.#value > this.#highest) this.#highest = this.#value
  }
}
