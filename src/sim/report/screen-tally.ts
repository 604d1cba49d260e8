import { QuantileSketch } from '../../base/quantile.ts'
import type { Entry } from '../../domain/entry.ts'
import { GUARD_ANSWERS, type GuardAnswer } from '../../domain/screening.ts'

/** What the judges said of requests, as sums. */
export interface ScreensView {
  readonly verdicts: { readonly passed: number; readonly partial: number; readonly blocked: number }
  /** Questions to guard models, by how they ended. */
  readonly guard: Readonly<Record<GuardAnswer, number>>
  readonly checkMs: { readonly p50: number | undefined; readonly p95: number | undefined; readonly max: number }
  /** Requests that should have been blocked and were answered, and the other way round; in simulation only. */
  readonly harmfulServed: number
  readonly harmlessBlocked: number
  /** Times that a key was told of, slowed or paused. */
  readonly abuse: number
}

const CHECK_MS_MAX = 60_000
const MEMORY_SAMPLES = 100_000_000

export class ScreenTally {
  readonly #verdicts = { passed: 0, partial: 0, blocked: 0 }
  readonly #guard = Object.fromEntries(GUARD_ANSWERS.map((answer) => [answer, 0])) as Record<GuardAnswer, number>
  readonly #checkMs = new QuantileSketch({ valueMax: CHECK_MS_MAX, memorySamples: MEMORY_SAMPLES })
  readonly #isHarmful: ((ticketId: string) => boolean) | undefined
  #checkMsMax = 0
  #harmfulServed = 0
  #harmlessBlocked = 0
  #abuse = 0

  constructor(isHarmful?: (ticketId: string) => boolean) {
    this.#isHarmful = isHarmful
  }

  take(entry: Entry): void {
    if (entry.kind === 'screened') {
      this.#verdicts[entry.verdict]++
      this.#checkMs.observe(entry.tookUs / 1_000)
      this.#checkMsMax = Math.max(this.#checkMsMax, entry.tookUs / 1_000)
    } else if (entry.kind === 'guard-answered') this.#guard[entry.answer]++
    else if (entry.kind === 'abuse-noticed') this.#abuse++
    else if (entry.kind === 'settled' && this.#isHarmful !== undefined) {
      const isHarmful = this.#isHarmful(entry.ticketId)
      if (isHarmful && entry.outcome === 'completed') this.#harmfulServed++
      if (!isHarmful && entry.outcome === 'blocked') this.#harmlessBlocked++
    }
  }

  get view(): ScreensView {
    return {
      verdicts: { ...this.#verdicts },
      guard: { ...this.#guard },
      checkMs: { p50: this.#checkMs.quantile(0.5), p95: this.#checkMs.quantile(0.95), max: this.#checkMsMax },
      harmfulServed: this.#harmfulServed,
      harmlessBlocked: this.#harmlessBlocked,
      abuse: this.#abuse,
    }
  }
}
