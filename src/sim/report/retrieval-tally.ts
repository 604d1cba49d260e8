import { QuantileSketch } from '../../base/quantile.ts'
import { RETRIEVAL_OUTCOMES, type RetrievalOutcome } from '../../domain/corpus.ts'
import type { AnswerLookup, Entry } from '../../domain/entry.ts'

/** Outcomes of retrievals and of lookups in the answer cache, as sums. */
export interface RetrievalView {
  readonly count: number
  readonly outcomes: Readonly<Record<RetrievalOutcome, number>>
  /** Share of retrievals with passages from a search or from a valid cache entry. */
  readonly goodRatio: number | undefined
  readonly waitMs: { readonly p50: number | undefined; readonly p95: number | undefined; readonly max: number }
}

export interface AnswersView {
  readonly lookups: Readonly<Record<AnswerLookup, number>>
  /** Share of lookups that found an answer, whether it was sent or generated again to compare. */
  readonly hitRatio: number | undefined
  /** Tokens that no engine computed. */
  readonly savedTokens: number
}

const WAIT_MS_MAX = 60_000
const MEMORY_SAMPLES = 100_000_000

export class RetrievalTally {
  readonly #outcomes = Object.fromEntries(RETRIEVAL_OUTCOMES.map((name) => [name, 0])) as Record<
    RetrievalOutcome,
    number
  >
  readonly #waitMs = new QuantileSketch({ valueMax: WAIT_MS_MAX, memorySamples: MEMORY_SAMPLES })
  #waitMsMax = 0
  readonly #lookups: Record<AnswerLookup, number> = { hit: 0, miss: 0, checked: 0, skipped: 0 }
  #savedTokens = 0

  take(entry: Entry): void {
    if (entry.kind === 'retrieval-ended') {
      this.#outcomes[entry.outcome]++
      const waitMs = entry.tookUs / 1_000
      this.#waitMs.observe(waitMs)
      this.#waitMsMax = Math.max(this.#waitMsMax, waitMs)
    } else if (entry.kind === 'answer-looked-up') {
      this.#lookups[entry.outcome]++
      this.#savedTokens += entry.saved.promptTokens + entry.saved.outputTokens
    }
  }

  get retrieval(): RetrievalView {
    const outcomes = { ...this.#outcomes }
    const count = Object.values(outcomes).reduce((sum, one) => sum + one, 0)
    const good = outcomes.fresh + outcomes.cached
    const waitMs = { p50: this.#waitMs.quantile(0.5), p95: this.#waitMs.quantile(0.95), max: this.#waitMsMax }
    return { count, outcomes, goodRatio: count === 0 ? undefined : good / count, waitMs }
  }

  get answers(): AnswersView {
    const { hit, checked, miss } = this.#lookups
    const asked = hit + checked + miss
    return {
      lookups: { ...this.#lookups },
      hitRatio: asked === 0 ? undefined : (hit + checked) / asked,
      savedTokens: this.#savedTokens,
    }
  }
}
