import type { Load } from './ledger.ts'
import type { Limit, LimitSample, LimitView } from './limit.ts'

/**
 * How much may be in flight at a replica that tells nothing, when only trouble is visible?
 *
 * Additive increase, multiplicative decrease (Chiu and Jain, 1989; TCP; Netflix's concurrency-limits): every answer
 * that came in time, while the limit was in use, adds 1 ÷ limit, so about one sequence a batch; a refusal, a lost
 * attempt or a first token later than `firstTokenUsMax` takes a tenth off, at most once in `decreaseUs`, because one
 * overload is seen by every sequence in flight.
 *
 * Deliberately not: it knows nothing of lengths or memory, and it must overshoot to learn. Use `gradient` where
 * latency rises before things break, `reported` where the engine says how it is.
 *
 * Laws: L2 at every grant; between 1 and `sequencesMax`; a limit of 1 still probes, so no mark lasts for ever.
 *
 * Worked example: limit 20, in use. 20 good answers: about 21. One refusal: 18.9, so 18. Nineteen more refusals within
 * the second: still 18.
 */
export const AIMD_LIMIT_DEFAULTS = {
  /** Sequences to start with: any engine worth a pool takes eight, and two minutes of growth reach the rest. */
  sequencesInitial: 8,
  /** Sequences. vLLM's own default for `max_num_seqs` on large GPUs. */
  sequencesMax: 256,
  /** What is left after a decrease. Netflix's default: gentle, because it is repeated while trouble lasts. */
  backoffRatio: 0.9,
  /** Microseconds between decreases: about the time that a decrease needs to show. */
  decreaseUs: 1_000_000,
  /** Microseconds to the first token beyond which an answer counts as trouble: the usual SLO. */
  firstTokenUsMax: 2_000_000,
} as const

export interface AimdLimitOptions {
  readonly sequencesInitial: number
  readonly sequencesMax: number
  readonly backoffRatio: number
  readonly decreaseUs: number
  readonly firstTokenUsMax: number
}

export class AimdLimit implements Limit {
  readonly name = 'aimd'
  readonly #options: AimdLimitOptions
  #limit: number
  #decreasedAt = Number.NEGATIVE_INFINITY
  #because = 'initial'

  constructor(options: AimdLimitOptions = AIMD_LIMIT_DEFAULTS) {
    this.#options = options
    this.#limit = options.sequencesInitial
  }

  isFull(load: Load): boolean {
    return load.sequences >= Math.floor(this.#limit)
  }

  fits(load: Load): boolean {
    return !this.isFull(load)
  }

  fullness(load: Load): number {
    return load.sequences / Math.floor(this.#limit)
  }

  observe(now: number, sample: LimitSample, load: Load): void {
    const { firstTokenUsMax, sequencesMax, backoffRatio, decreaseUs } = this.#options
    const isLate = sample.firstTokenUs !== undefined && sample.firstTokenUs > firstTokenUsMax
    if (sample.isDropped || isLate) {
      if (now - this.#decreasedAt < decreaseUs) return
      this.#decreasedAt = now
      this.#limit = Math.max(1, this.#limit * backoffRatio)
      this.#because = isLate ? 'a first token came late' : 'an attempt was refused or lost'
    } else if (load.sequences * 2 >= this.#limit) {
      // Half in use is in use: otherwise a quiet night would raise the limit to the sky.
      this.#limit = Math.min(sequencesMax, this.#limit + 1 / this.#limit)
      this.#because = 'answers come in time'
    }
  }

  view(): LimitView {
    return { sequencesMax: Math.floor(this.#limit), because: this.#because }
  }
}
