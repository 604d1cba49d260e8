import { assert } from '../../base/assert.ts'
import type { Estimate } from '../../domain/plan.ts'

/**
 * How much KV memory is booked for the answers that a replica writes?
 *
 * Each answer by itself may become as long as its cautious prediction (P90), and alone it books that. All of them together
 * never are: some end early, and none holds at its beginning what it will hold at its end. An answer that books its P90 for
 * all its time holds 35 to 60 % of it, and where answers have thousands of tokens others wait for room that is there. So a
 * long answer books
 *
 *     what is likely   its prompt and its median length; and when it has written more, what it has written
 *     its doubt        what is left from there to its P90
 *
 * and the doubts of independent answers are added as deviations are, by the root of their squares:
 *
 *     booked = Σ likely + √(Σ doubt²)                 one answer: its P90.  Thirty alike: their medians and 5.5 doubts
 *
 * Short answers (a P90 of `longTokens` or less) book their P90, as memory is not what such a pool is short of. Growth
 * moves tokens from the doubt to what is likely and never makes the sum less, so nothing that was booked is given out
 * before an answer ends. Everything but the root is a sum of whole numbers: what was added is taken off exactly.
 *
 * Deliberately not: the sums of several gateways or pools are added as they are, each with its own root, which is more than
 * the root of all and therefore safe.
 *
 * Worked example: answers of 500 + 2,000 tokens, P90 6,000. One: 2,500 + 4,000 = 6,500. Sixteen: 40,000 + 16,000, not
 * 104,000. One of them has written 3,000: 1,000 more are likely, its doubt is 3,000, and 56,783 are booked.
 */
export const BOOKED_ROOM_DEFAULTS = {
  /** Tokens of the cautious prediction up to which an answer books all of it. */
  longTokens: 1_024,
} as const

/** KV room that an answer may need: its whole prompt and the cautious prediction of its length. */
export const kvTokensOf = (estimate: Estimate): number => Math.ceil(estimate.promptTokens + estimate.outputTokensHigh)

/** KV room that an answer likely needs. */
export const likelyKvTokensOf = (estimate: Estimate): number =>
  isLongAnswer(estimate) ? Math.ceil(estimate.promptTokens + estimate.outputTokens) : kvTokensOf(estimate)

/** Output tokens that room is booked for: an answer that has written more grows. */
export const bookedOutputOf = (estimate: Estimate): number =>
  Math.ceil(isLongAnswer(estimate) ? estimate.outputTokens : estimate.outputTokensHigh)

/** Whether less than its cautious prediction is booked. */
export const isLongAnswer = ({ outputTokens, outputTokensHigh }: Estimate): boolean =>
  outputTokensHigh > BOOKED_ROOM_DEFAULTS.longTokens && outputTokens < outputTokensHigh

/** What an answer that has grown by so much may need beyond what is likely. */
const doubtOf = (estimate: Estimate, grownTokens: number): number =>
  Math.max(0, kvTokensOf(estimate) - likelyKvTokensOf(estimate) - grownTokens)

/** Part of an answer's growth that its cautious prediction did not have. */
export const beyondTokensOf = (estimate: Estimate, grownTokens: number): number =>
  Math.max(0, likelyKvTokensOf(estimate) + grownTokens - kvTokensOf(estimate))

export class BookedRoom {
  /** Σ likely, with what answers have grown by. */
  #likelyTokens = 0
  #grownTokens = 0
  #doubtSquares = 0

  get tokens(): number {
    return this.#likelyTokens + rootOf(this.#doubtSquares)
  }

  /** What would be booked with one more answer, and without those. */
  tokensWith(estimate: Estimate, without?: BookedRoom): number {
    const doubt = doubtOf(estimate, 0)
    const likelyTokens = this.#likelyTokens - (without === undefined ? 0 : without.#likelyTokens)
    const squares = this.#doubtSquares - (without === undefined ? 0 : without.#doubtSquares)
    return likelyTokens + likelyKvTokensOf(estimate) + rootOf(squares + doubt * doubt)
  }

  /** Without what answers have grown by. */
  get grantedTokens(): number {
    return this.tokens - this.#grownTokens
  }

  get isEmpty(): boolean {
    return this.#likelyTokens === 0 && this.#grownTokens === 0 && this.#doubtSquares === 0
  }

  add(estimate: Estimate, grownTokens = 0): void {
    this.#move(estimate, grownTokens, 1)
  }

  remove(estimate: Estimate, grownTokens: number): void {
    this.#move(estimate, grownTokens, -1)
  }

  /** An answer that had grown by `before` grows by more. */
  grow(estimate: Estimate, before: number, tokens: number): void {
    this.#grownTokens += tokens
    this.#likelyTokens += tokens
    this.#doubtSquares += doubtOf(estimate, before + tokens) ** 2 - doubtOf(estimate, before) ** 2
  }

  copyFrom(other: BookedRoom): void {
    this.#likelyTokens = other.#likelyTokens
    this.#grownTokens = other.#grownTokens
    this.#doubtSquares = other.#doubtSquares
  }

  assertInvariants(): void {
    assert(this.#likelyTokens >= 0 && this.#grownTokens >= 0 && this.#doubtSquares >= 0, 'booked room is never owed')
  }

  #move(estimate: Estimate, grownTokens: number, sign: 1 | -1): void {
    this.#likelyTokens += sign * (likelyKvTokensOf(estimate) + grownTokens)
    this.#grownTokens += sign * grownTokens
    this.#doubtSquares += sign * doubtOf(estimate, grownTokens) ** 2
  }
}

const rootOf = (squares: number): number => (squares === 0 ? 0 : Math.ceil(Math.sqrt(squares)))
