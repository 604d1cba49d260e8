import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { Candidate } from './candidate.ts'
import type { Measured } from './offer.ts'

/**
 * How alike are a pool's answers, and how fast do they come? Learned from the answers that end: the mean and the variance
 * of their lengths, the time from a turn to its first token, and the time a token. From these follows how far ahead a
 * turn is charged (`charge-ahead.ts`) and how many tokens an answer that runs should have by now.
 *
 * Of the whole pool, not of each tenant: an error in the pace is then the same for all who share, and evens out; and
 * tenants whose answers are alike are charged by the same rule as those beside them whose answers are not.
 *
 * Bound: seven numbers, and one place in the heap for each lease that is out.
 */

/** Answers before the spread is believed; until then predictions are charged whole. */
const ANSWERS_BEFORE = 8
/**
 * Weight of one answer in the running mean and variance of lengths, and in the pace: about the last fifty count. What the
 * pace is wrong by is charged by age, so where one tenant's answers are longer than another's a pace that dances moves
 * their standing: with a tenth the gap of such two was wider (docs/adr/0037).
 */
const LENGTH_PART = 0.02
/** The same for the time to the first token: batches grow and shrink within seconds. */
const TIME_PART = 0.1

export class PoolAnswers {
  /** Leases whose answers are charged as they come, by when the next charge is due. */
  readonly decoding = new IndexedHeap<Candidate>()
  #count = 0
  #mean = 0
  #variance = 0
  /** Running means of the time that answers took from their first token, and of their tokens then. */
  #decodeUs = 0
  #decodeTokens = 0
  #pacedCount = 0
  #firstTokenUs = 0

  /** Microseconds for one token of an answer; 0 while unknown. */
  get tokenUs(): number {
    return this.#pacedCount === 0 ? 0 : this.#decodeUs / this.#decodeTokens
  }

  /** Mean length of an answer; 0 while none has ended. */
  get meanTokens(): number {
    return this.#mean
  }

  /** Microseconds from a turn to its first token. */
  get firstTokenUs(): number {
    return this.#firstTokenUs
  }

  /** Variance of the lengths over the square of their mean; 0 while too few have been seen. */
  get spread(): number {
    return this.#count < ANSWERS_BEFORE ? 0 : this.#variance / (this.#mean * this.#mean)
  }

  /** An attempt that its tenant pays for is over. */
  observe({ cost, outputTokens = 0, meanTokenUs, tokenCount = 0, firstTokenUs }: Measured): void {
    if (!(cost > 0 && outputTokens > 0)) return
    this.#count++
    const part = Math.max(1 / this.#count, LENGTH_PART)
    const apart = outputTokens - this.#mean
    this.#mean += part * apart
    this.#variance = (1 - part) * (this.#variance + part * apart * apart)
    if (firstTokenUs !== undefined) {
      // Answers that are not streamed say nothing of it: the first that does is believed, however many came before.
      const timePart = this.#firstTokenUs === 0 ? 1 : Math.max(part, TIME_PART)
      this.#firstTokenUs += timePart * (firstTokenUs - this.#firstTokenUs)
    }
    if (meanTokenUs === undefined || !(meanTokenUs * tokenCount > 0)) return
    // Choices of one answer come side by side: its tokens share the time.
    const pacePart = Math.max(1 / ++this.#pacedCount, LENGTH_PART)
    this.#decodeUs += pacePart * (meanTokenUs * tokenCount - this.#decodeUs)
    this.#decodeTokens += pacePart * (outputTokens - this.#decodeTokens)
  }
}
