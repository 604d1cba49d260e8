import { Ewma } from '../../base/ewma.ts'
import type { StepModel } from '../../domain/engine-speed.ts'
import type { Estimate } from '../../domain/plan.ts'
import { contextTokensOf, type Load, prefillMilliOf } from './ledger.ts'
import type { Limit, LimitSample, LimitView, OfflineTerms } from './limit.ts'

/**
 * How much may be in flight at a replica whose speed is known?
 *
 * As much as keeps the mean time per output token within the pool's promise. The ledger knows how many sequences
 * decode over how much context, and how many prompt tokens ride along with each step: a sequence that brings p prompt
 * tokens and o output tokens adds p ÷ o of them to the average step of its life, and by Little's law so do those that
 * come after it. The step-time model turns these three into a mean step: the time per output token, with prefill
 * interference in it. And no more prompt tokens than a step has room for: beyond that they would queue inside the
 * engine, where the time per token does not show it.
 *
 * A bound on the mean and not on the single step: one chunk of 2,048 prompt tokens takes over 100 ms on an A100 by
 * itself, so a bound on the step would never start a long prompt. What answers really took corrects the model by a
 * learned factor, so that a replica that is slower than its profile is given less.
 *
 * And no queue inside the engine: while the prompts that it has not begun to answer fill a step, it gets no more. A
 * burst into an idle engine would otherwise take every place at once, and wait for its first tokens where nobody can
 * reorder, degrade or refuse it. The bound is on what is there already, so that long prompts fit when short ones do. An
 * engine that is learned, and calm, may have more unread: as much as is read in a part of the promised first token.
 *
 * Deliberately not: no KV (the replica's room checks it against memory), no look at the queue, no bound on the first
 * token (admission's business).
 *
 * Laws: L2 at every grant; L6 through `sequencesMin` and the idle rule: never locked up.
 *
 * Worked example: model 6 ms + 0.1 ms a sequence + 0.02 µs a context token + 5 µs a prompt token; promise 26 ms, aim
 * 22.1. 64 sequences of 1,000 + 200 tokens: context 64 × 1,100 = 70,400, prompt tokens a step 64 × 5 = 320:
 * 6 + 6.4 + 1.4 + 1.6 = 15.4 ms, fits. The same with answers of 20 tokens: 3,200 a step, 29.7 ms: full.
 */
export const REPORTED_LIMIT_DEFAULTS = {
  /**
   * What is aimed at, of the promise: the mean of an answer varies, and nearly all should be within it. With 0.9 one in
   * twenty was not, on engines whose steps grow steeply; with 0.8 too little was in flight.
   */
  aimRatio: 0.85,
  /** Sequences that are allowed whatever the model says: two overlap the way of one answer with the next prefill. */
  sequencesMin: 2,
  /** Sequences: what the engine itself runs at once at most (`max_num_seqs`). */
  sequencesMax: 256,
  /** Prompt tokens not yet answered at which it gets no more: one step of an engine with vLLM's usual budget. */
  prefillTokensMax: 2_048,
  /**
   * Share of the promised first token that unread prompts may take to be read while the engine is calm; 0: a step at any
   * time. An engine behind a network has read its prompts before the gateway hears of it, and would wait for the next.
   */
  calmUnreadRatio: 0,
  /**
   * An engine is calm while its mean step takes no more than this share of the promised time per token. With 0.45 an engine
   * whose prompts cost a step each, however short, had first tokens at p95 a quarter later at 0.6 of its capacity.
   */
  calmRatio: 0.6,
  /** Microseconds over which the correction of the model forgets: as long as an answer takes, so that it keeps up. */
  correctionMemoryUs: 10_000_000,
  /** Whole answers that the model's own word is worth, before any has come. */
  correctionPriorAnswers: 8,
  /** Tokens of a whole answer. A shorter one counts less: it may have met one long prompt and little else. */
  correctionTokens: 64,
  /** The correction stays between these: beyond them it is a fault, which health must see, not a limit. */
  correctionMin: 0.5,
  correctionMax: 4,
} as const

export interface ReportedLimitOptions {
  readonly aimRatio: number
  readonly sequencesMin: number
  readonly sequencesMax: number
  readonly prefillTokensMax: number
  readonly calmUnreadRatio: number
  readonly calmRatio: number
  readonly correctionMemoryUs: number
  readonly correctionPriorAnswers: number
  readonly correctionTokens: number
  readonly correctionMin: number
  readonly correctionMax: number
}

/** Share of the promised time per token that offline turns may use, where nothing else is said. */
const OFFLINE_RATIO = 0.48
/** Share of a step up to which prompts may be unread when an offline one is given. */
const OFFLINE_STEP_RATIO = 0.5

/** Microseconds to the first token, and mean microseconds per output token. */
export interface PromisedPace {
  readonly ttftUs: number
  readonly interTokenUs: number
}

export interface ReportedLimitParts {
  readonly model: StepModel
  /** What the platform has promised: asked each time, because tenants and their SLOs change while it runs. */
  readonly promise: PromisedPace
  /** Further bound on the sequences, which learns; absent where the engine's own bound is known. */
  readonly ceiling?: LearnedCeiling
  readonly options?: Partial<ReportedLimitOptions>
}

/** How many sequences an engine may get, as far as it has shown. */
export interface LearnedCeiling {
  readonly sequencesMax: number
  readonly because: string
  served(now: number, sequences: number): void
}

export class ReportedLimit implements Limit {
  readonly name = 'reported'
  readonly #source: StepModel
  /** The source as it was when an answer last came back: between that and the next turn what fits must not change (L6). */
  #model: StepModel
  readonly #promise: PromisedPace
  readonly #tokensPerStepMax: number
  readonly #options: ReportedLimitOptions
  readonly #ceiling: LearnedCeiling | undefined
  readonly #correction: Ewma

  constructor(parts: ReportedLimitParts) {
    this.#source = parts.model
    this.#model = parts.model.frozen?.() ?? parts.model
    this.#promise = parts.promise
    this.#options = { ...REPORTED_LIMIT_DEFAULTS, ...parts.options }
    this.#ceiling = parts.ceiling
    this.#tokensPerStepMax = parts.model.tokensPerStepMax ?? Number.POSITIVE_INFINITY
    this.#correction = new Ewma(this.#options.correctionMemoryUs)
  }

  isFull(load: Load): boolean {
    return !this.#isWithin(load, 0, 0, this.#promise.interTokenUs)
  }

  fits(load: Load, estimate: Estimate, offline?: OfflineTerms): boolean {
    const { interTokenUs } = this.#promise
    const boundUs = offline === undefined ? interTokenUs : (offline.interTokenUs ?? interTokenUs * OFFLINE_RATIO)
    if (boundUs < interTokenUs && this.#isUnreadFor(load)) return false
    return this.#isWithin(load, contextTokensOf(estimate), prefillMilliOf(estimate), Math.min(interTokenUs, boundUs))
  }

  /** By slots or by the mean step, whichever is nearer to its bound; an empty step is there whatever runs. */
  fullness({ sequences, contextTokens, prefillMilliPerToken }: Load): number {
    const aimUs = (this.#promise.interTokenUs * this.#options.aimRatio) / this.#factor()
    const emptyUs = this.#meanTokenUs(0, 0, 0)
    const addedUs = this.#meanTokenUs(sequences, contextTokens, prefillMilliPerToken) - emptyUs
    return Math.max(sequences / this.#sequencesMax, aimUs > emptyUs ? addedUs / (aimUs - emptyUs) : 0)
  }

  /** Whoever comes next waits behind what is unread: offline prompts leave half of a step free. */
  #isUnreadFor({ sequences, prefillTokens }: Load): boolean {
    const { sequencesMin, prefillTokensMax } = this.#options
    return sequences >= sequencesMin && prefillTokens >= OFFLINE_STEP_RATIO * prefillTokensMax
  }

  observe(now: number, sample: LimitSample, load: Load): void {
    this.#model = this.#source.frozen?.() ?? this.#source
    if (!sample.isDropped) this.#ceiling?.served(now, load.sequences)
    if (sample.meanTokenUs === undefined) return
    const predictedUs = this.#meanTokenUs(load.sequences, load.contextTokens, load.prefillMilliPerToken)
    const { correctionMin, correctionMax, correctionPriorAnswers, correctionTokens } = this.#options
    const ratio = Math.max(correctionMin, Math.min(correctionMax, sample.meanTokenUs / Math.max(1, predictedUs)))
    if (this.#correction.view() === undefined) this.#correction.observe(now, 1, correctionPriorAnswers)
    this.#correction.observe(now, ratio, Math.min(1, (sample.tokenCount ?? correctionTokens) / correctionTokens))
  }

  view(): LimitView {
    const because = `${this.#promise.interTokenUs / 1_000} ms a token, the model corrected by ${this.#factor().toFixed(2)}`
    return { sequencesMax: this.#sequencesMax, because }
  }

  /** Whether the prompts that are not yet answered fill a step or, in a calm engine, delay a newcomer noticeably. */
  #isReadingFull({ prefillTokens, sequences, contextTokens, prefillMilliPerToken }: Load): boolean {
    const { prefillTokensMax, calmUnreadRatio, calmRatio } = this.#options
    if (prefillTokens < prefillTokensMax) return false
    if (calmUnreadRatio === 0) return true
    const stepUs = this.#meanTokenUs(sequences, contextTokens, prefillMilliPerToken)
    if (stepUs > calmRatio * this.#promise.interTokenUs) return true
    const promptTokenUs = this.#meanTokenUs(sequences, 0, 1_000) - this.#meanTokenUs(sequences, 0, 0)
    return prefillTokens * promptTokenUs >= calmUnreadRatio * this.#promise.ttftUs
  }

  get #sequencesMax(): number {
    return Math.min(this.#options.sequencesMax, this.#ceiling?.sequencesMax ?? Number.POSITIVE_INFINITY)
  }

  #isWithin(load: Load, contextTokens: number, prefillMilli: number, boundUs: number): boolean {
    const sequences = load.sequences + 1
    if (sequences > this.#sequencesMax || this.#isReadingFull(load)) return false
    if (sequences <= this.#options.sequencesMin) return true
    const context = load.contextTokens + contextTokens
    const prefill = load.prefillMilliPerToken + prefillMilli
    if (sequences + prefill / 1_000 > this.#tokensPerStepMax) return false
    const aimUs = boundUs * this.#options.aimRatio
    return this.#meanTokenUs(sequences, context, prefill) * this.#factor() <= aimUs
  }

  #meanTokenUs(sequences: number, contextTokens: number, prefillMilli: number): number {
    return this.#model.meanTokenUs(sequences, contextTokens, prefillMilli / 1_000)
  }

  #factor(): number {
    return this.#correction.view() ?? 1
  }
}
