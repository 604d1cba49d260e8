import type { Candidate } from './candidate.ts'
import type { DispatcherOptions } from './dispatch-options.ts'
import type { Measured } from './offer.ts'
import type { PoolState } from './pool-state.ts'

/**
 * How much of an answer is a tenant charged for, before the answer is there?
 *
 * Charging the whole prediction evens out what was *promised*: who has long answers running has paid for tokens that it
 * does not have yet, and those beside it are served more meanwhile. Charging nothing ahead evens out what was *delivered*,
 * too late: where answers are alike they end together, and everything that ends goes to one tenant. So a turn is charged
 * its input and a *horizon* of output, and stays charged that far ahead while its answer comes:
 *
 *     horizon = min(predicted tokens, aheadTurns × tokens between turns ÷ spread)
 *     tokens between turns: mean length ÷ answers that run      spread: variance ÷ mean² of the pool's lengths
 *
 *     charged ──────────────┐ generated + horizon, never beyond the prediction until that is passed
 *     generated ──────┐     │
 *     ────────────────┴─────┴──────────▶ tokens
 *
 * What an answer brings before the next turn is given can no longer be made good: with 19 answers of 256 tokens a turn
 * comes every 13 tokens, with 64 every 4, and a horizon that is right for the one makes shares swing for the other.
 * Answers that are alike (spread 0) are charged whole, as they end together, and their prediction is worth it. With 19 at
 * once, lengths from 32 to 480 (0.25) are charged 27 tokens ahead; log-normal ones (0.9) seven.
 *
 * How many tokens an answer has is told only when it has passed its prediction, and at its end. Between, the pool's pace
 * says it: a heap holds the running answers by when they are due for the next charge. Whoever is due is charged before
 * turns are given to more than one ticket, `CHARGES_MAX` a time; the order of turns is asked at no other time. While
 * pace or spread are unknown, the whole prediction is charged.
 *
 * Cost: O(log n) a charge, one for each `stepTokens` of an answer; none where answers are alike.
 *
 * Law L7: a charge is a correction like others. What is still to be corrected of a turn is at most its prediction less
 * its horizon, and the steps that are due. Turns that still run when nobody waits have their charges forgiven; what they
 * cost less than charged is credit then, a run of turns for their tenant, once: within that bound (`deficit-round-robin.ts`).
 */
const CHARGES_MAX = 64

export class Charges {
  readonly #options: DispatcherOptions

  constructor(options: DispatcherOptions) {
    this.#options = options
  }

  /** The ticket gets its turn. Returns what it is charged at once. */
  grant(now: number, pool: PoolState, candidate: Candidate): number {
    const { estimate } = candidate
    const { answers } = pool
    const tokens = this.#aheadOf(pool, candidate, this.#options.stepTokens / 2)
    const laterCost = (estimate.outputTokens - tokens) * this.#options.outputTokenCost
    candidate.chargedTokens = tokens
    candidate.chargedCost = Math.max(0, estimate.cost - laterCost)
    // Of an answer that is not streamed the first token is never told: it begins when others do.
    candidate.decodesAt = now + answers.firstTokenUs
    if (tokens < estimate.outputTokens && answers.tokenUs > 0)
      answers.decoding.push(candidate, candidate.decodesAt + this.#options.stepTokens * answers.tokenUs)
    return candidate.chargedCost
  }

  /** The ticket's first token has come. */
  begin(now: number, { answers }: PoolState, candidate: Candidate): void {
    candidate.decodesAt = now
    if (answers.decoding.has(candidate))
      answers.decoding.update(candidate, now + this.#options.stepTokens * answers.tokenUs)
  }

  /** Charges the answers that should have another step of tokens by now. */
  catchUp(now: number, pool: PoolState): void {
    const { decoding, tokenUs } = pool.answers
    for (let left = CHARGES_MAX; left > 0; left--) {
      const dueAt = decoding.peekKey()
      if (dueAt === undefined || dueAt > now) return
      const candidate = decoding.peek() as Candidate
      // The first token came when the answer began.
      const tokens = 1 + Math.max(0, Math.floor((now - candidate.decodesAt) / tokenUs))
      this.progress(pool, candidate, tokens, this.#options.stepTokens / 2)
      decoding.update(candidate, now + this.#options.stepTokens * tokenUs)
    }
  }

  /**
   * The answer has this many tokens: as told, or by the pool's pace. Then the next step is charged to its middle: else an
   * answer of which nothing is told would be charged half a step less, on average, than one that has passed its prediction.
   */
  progress(pool: PoolState, candidate: Candidate, tokens: number, halfStepTokens = 0): void {
    const { fairness } = pool.sideOf(candidate.lane)
    const chargedTokens = tokens + this.#aheadBeyond(pool, candidate, tokens, halfStepTokens)
    if (chargedTokens <= candidate.chargedTokens) return
    const cost = (chargedTokens - candidate.chargedTokens) * this.#options.outputTokenCost
    candidate.chargedTokens = chargedTokens
    candidate.chargedCost += cost
    fairness.charge(candidate.lane, cost)
    pool.turns?.charge(cost)
  }

  /** The attempt is over: the measured cost takes the charge's place, and the pool learns. */
  end(pool: PoolState, candidate: Candidate, measured: Measured): void {
    const { answers } = pool
    if (answers.decoding.has(candidate)) answers.decoding.remove(candidate)
    answers.observe(measured)
    const unchargedCost = measured.cost - candidate.chargedCost
    pool.sideOf(candidate.lane).fairness.charge(candidate.lane, unchargedCost)
    pool.turns?.charge(unchargedCost)
  }

  #aheadOf(pool: PoolState, { lane, estimate }: Candidate, halfStepTokens: number): number {
    if (!pool.sideOf(lane).fairness.isChargedAhead) return 0
    const { spread, tokenUs, meanTokens } = pool.answers
    if (tokenUs === 0 || spread === 0) return estimate.outputTokens
    const tokensBetweenTurns = meanTokens / Math.max(1, pool.heldCount)
    const horizonTokens = (this.#options.aheadTurns * tokensBetweenTurns) / spread
    return Math.min(estimate.outputTokens, Math.round(horizonTokens + halfStepTokens))
  }

  #aheadBeyond(pool: PoolState, candidate: Candidate, tokens: number, halfStepTokens: number): number {
    const { outputTokens } = candidate.estimate
    const aheadTokens = this.#aheadOf(pool, candidate, halfStepTokens)
    if (tokens < outputTokens) return Math.min(outputTokens - tokens, aheadTokens)
    // An answer that has passed its prediction is charged on by a part of what it has: a few times, not at every token.
    const overrunTokens = Math.ceil(tokens * this.#options.overrunRatio)
    if (aheadTokens < outputTokens) return Math.min(aheadTokens, overrunTokens)
    return pool.sideOf(candidate.lane).fairness.isChargedAhead && tokens > candidate.chargedTokens ? overrunTokens : 0
  }
}
