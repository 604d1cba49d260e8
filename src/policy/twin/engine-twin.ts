import type { Instant } from '../../base/clock.ts'
import { FadingFit } from '../../base/fading-fit.ts'
import type { EngineSpeed, StepModel } from '../../domain/engine-speed.ts'
import type { Load } from '../limits/ledger.ts'
import { ChangeWatch } from './change-watch.ts'
import { MeanError } from './mean-error.ts'
import { PriorChoice } from './prior-choice.ts'
import type { Steps } from './times-under-load.ts'
import { priorOfMemory, type TwinMemory } from './twin-memory.ts'
import { readTerms, type TwinPrior } from './twin-prior.ts'

/**
 * How long do the steps of an engine take that nobody described?
 *
 * A gateway does not see steps. It sees when each attempt had its turn, when its first token came and how far apart the
 * others came, and it knows who else was there. That is enough for the two questions that policies ask:
 *
 *   time per token   = b + s · sequences + k · context + c · prompt tokens a token      while an answer is written
 *   time to read     = r₀ + r₁ · tokens up to the knot + r₂ · tokens beyond + r₃ · pairs          alone
 *
 * Every stretch of an answer (some dozens of tokens) is a row of the first: the time per token of the stretch against
 * means over it of what was in flight, and the prompts that were read meanwhile. Every first token is a row of the
 * second: the time from the turn, less what the decodes beside it add to its steps. Both are fitted by least squares that
 * forget, clip and have a prior (`base/fading-fit.ts`).
 *
 * The coefficients are not known one by one: context grows with sequences, and a calm day shows no large batch. Sums in
 * the range that was seen are right all the same; beyond the range the prior's proportions decide, scaled to what was
 * seen, and `isSeen` says so. The prior is the named profile, or the built-in one that comes nearest (`prior-choice.ts`).
 *
 * When what comes is off by three tenths for dozens of rows on end, the engine has changed (throttled, restarted, another
 * model): all it showed before fades at once, and the coefficients as they were, scaled by the error, are the prior
 * (`change-watch.ts`). Without that, a bad minute would be remembered for minutes, beside an engine that is well again.
 *
 * Deliberately not: no single steps, no queue inside the engine (`twin-ceiling.ts` bounds that), no tenants.
 *
 * Laws: L10 (it hears what a gateway sees). Non-decreasing in every argument, since no coefficient is negative.
 * Example: 6 ms + 0.1 ms a sequence + 0.02 µs a context token + 9 µs a prompt token: 64 sequences of 1,100 tokens, and
 * 320 tokens of prompts with each step, take 6 + 6.4 + 1.4 + 2.9 = 16.7 ms.
 */
export const TWIN_DEFAULTS = {
  /** Rows that a prior is worth, for each coefficient. */
  priorRows: 2,
  /** Relative error from which a row counts less: an answer beside a long prompt is off by that much and is no fault. */
  clipRatio: 0.3,
  /** Microseconds that a row is remembered: longer than a burst, so that large batches stay known between them. */
  memoryUs: 180_000_000,
  /** Rows that are remembered: at most this many, or an hour of calm would outweigh any burst. */
  memoryRows: 2_000,
  /** Rows from which the twin is believed, and the mean error up to which it is. */
  trustedRows: 24,
  trustedError: 0.25,
  /**
   * Factor that one row adds to the mean error at most. Errors are logarithms, so that twice as long and half as long weigh
   * the same. Without a bound one token that was read together with the one before it would count as a thousand.
   */
  rowErrorFactorMax: 2,
  /**
   * A mean error of this factor over so many rows means another engine, of which one row says `rowFactorMax` at most: one
   * answer in ten that is held up on its way is no other engine. First tokens scatter more, and come less often.
   */
  decodeChange: { factor: 1.3, rows: 24, rowFactorMax: 2 },
  readChange: { factor: 1.7, rows: 8, rowFactorMax: 2.5 },
  /** What is left of all that was seen before a change. */
  changeKeep: 0.02,
  /** Beyond the largest load seen, times this, answers are extrapolations. */
  seenFactor: 1.25,
} as const

/** Where a stretch of an answer began. */
export interface Stretch {
  at: Instant
  tokens: number
  sequenceUs: number
  contextTokenUs: number
  readTokens: number
}

export interface FirstTokenSeen {
  readonly uncachedTokens: number
  readonly cachedTokens: number
  /** Prompt tokens that waited to be read before it. */
  readonly aheadTokens: number
  /** Others in flight at its turn, and their context. */
  readonly sequences: number
  readonly contextTokens: number
  readonly tookUs: number
}

export interface TwinView {
  readonly prior: string
  readonly decode: readonly number[]
  readonly read: readonly number[]
  readonly rows: number
  /** Mean errors of the predictions: 0.2 is off by a factor of 1.2, either way. Undefined before the first row. */
  readonly tokenError: number | undefined
  readonly firstTokenError: number | undefined
  readonly sequencesSeen: number
  readonly isTrusted: boolean
  readonly changes: number
}

export class EngineTwin implements EngineSpeed, Steps {
  #choice: PriorChoice
  readonly #decode: FadingFit
  readonly #read: FadingFit
  readonly #tokenError = new MeanError(TWIN_DEFAULTS.memoryUs / 6, TWIN_DEFAULTS.rowErrorFactorMax)
  readonly #firstTokenError = new MeanError(TWIN_DEFAULTS.memoryUs / 6, TWIN_DEFAULTS.rowErrorFactorMax)
  readonly #decodeChange = new ChangeWatch(TWIN_DEFAULTS.decodeChange)
  readonly #readChange = new ChangeWatch(TWIN_DEFAULTS.readChange)
  #changes = 0
  #rows = 0
  #decodeAt: Instant = 0
  #readAt: Instant = 0
  // ── what was in flight, summed over time ──
  #notedAt: Instant = 0
  #sequences = 0
  #contextTokens = 0
  #sequenceUs = 0
  #contextTokenUs = 0
  #readTokens = 0
  #sequencesSeen = 0

  constructor(priors: readonly TwinPrior[], cautious: TwinPrior) {
    const { priorRows, clipRatio } = TWIN_DEFAULTS
    this.#choice = new PriorChoice(priors, cautious)
    this.#decode = new FadingFit(cautious.decode, { priorRows, clipRatio })
    this.#read = new FadingFit(cautious.read, { priorRows, clipRatio })
  }

  // ── what policies ask ──

  get tokenBudget(): number {
    return this.#choice.prior.tokenBudget
  }

  meanTokenUs(sequences: number, contextTokens: number, prefillTokens: number): number {
    return stepUsOf(this.#decode.coefficients(), sequences, contextTokens, Math.min(prefillTokens, this.tokenBudget))
  }

  frozen(): StepModel {
    const { tokenBudget } = this
    const coefficients = this.#decode.coefficients()
    return {
      meanTokenUs: (sequences, contextTokens, prefillTokens) =>
        stepUsOf(coefficients, sequences, contextTokens, Math.min(prefillTokens, tokenBudget)),
    }
  }

  prefillUs(uncachedTokens: number, cachedTokens: number): number {
    return Math.round(this.#read.predict(readTerms(Math.max(1, uncachedTokens), cachedTokens)))
  }

  tokenUs(contextTokens: number): number {
    return Math.round(this.meanTokenUs(1, contextTokens, 0))
  }

  /** Time of a full engine: its step shared by many. */
  readonly shareUs = (uncachedTokens: number, outputTokens: number): number => {
    const [base, perSequence, perContext, perPrompt] = this.#decode.coefficients() as Four
    const outputTokenUs = base / FULL_SEQUENCES + perSequence + perContext * (uncachedTokens + outputTokens / 2)
    return Math.max(1, Math.round(uncachedTokens * perPrompt + outputTokens * outputTokenUs))
  }

  /** Whether a load like this was seen since the last change, so that what is said of it is not an extrapolation. */
  isSeen(sequences: number): boolean {
    return sequences <= this.#sequencesSeen * TWIN_DEFAULTS.seenFactor
  }

  get isTrusted(): boolean {
    const { trustedRows, trustedError } = TWIN_DEFAULTS
    const error = this.#tokenError.view()
    return this.#rows >= trustedRows && error !== undefined && error <= trustedError
  }

  /** When the last row came. */
  get heardAt(): Instant {
    return Math.max(this.#decodeAt, this.#readAt)
  }

  get rows(): number {
    return this.#rows
  }

  /** A twin of another replica of the same pool, which begins with what this one knows. */
  offspring(): EngineTwin {
    const name = `${this.#choice.prior.name}, as another replica`
    const { tokenBudget } = this
    const prior = { name, decode: priorFrom(this.#decode), read: priorFrom(this.#read), tokenBudget }
    return new EngineTwin([prior], prior)
  }

  /** Begins with what was known before a restart, unless it has learned as much by itself. */
  remember(memory: TwinMemory): boolean {
    if (this.#rows >= TWIN_DEFAULTS.trustedRows) return false
    const prior = priorOfMemory(memory)
    this.#choice = new PriorChoice([prior], prior)
    this.#decode.setPrior(prior.decode)
    this.#read.setPrior(prior.read)
    this.#sequencesSeen = Math.max(this.#sequencesSeen, memory.sequencesSeen)
    return true
  }

  view(): TwinView {
    return {
      prior: this.#choice.prior.name,
      decode: this.#decode.coefficients(),
      read: this.#read.coefficients(),
      rows: this.#rows,
      tokenError: this.#tokenError.view(),
      firstTokenError: this.#firstTokenError.view(),
      sequencesSeen: this.#sequencesSeen,
      isTrusted: this.isTrusted,
      changes: this.#changes,
    }
  }

  // ── what it hears ──

  /** What is in flight has changed, and is now this. */
  note(now: Instant, load: Load): void {
    const elapsedUs = Math.max(0, now - this.#notedAt)
    this.#sequenceUs += this.#sequences * elapsedUs
    this.#contextTokenUs += this.#contextTokens * elapsedUs
    this.#notedAt = Math.max(now, this.#notedAt)
    this.#sequences = load.sequences
    this.#contextTokens = load.contextTokens
    this.#readTokens = load.readTokens
  }

  /** A first token came: a row of reading, and a stretch begins. */
  begun(now: Instant, seen: FirstTokenSeen): void {
    if (seen.tookUs <= 0) return
    const [, perSequence, perContext] = this.#decode.coefficients() as Four
    const { sequences, contextTokens, aheadTokens, cachedTokens } = seen
    const toReadTokens = Math.max(1, aheadTokens + seen.uncachedTokens)
    const stepCount = Math.ceil(toReadTokens / this.tokenBudget)
    const besideUs = perSequence * sequences + perContext * contextTokens
    const restUs = aheadTokens === 0 && sequences > 0 ? this.meanTokenUs(sequences, contextTokens, 0) / 2 : 0
    const aloneUs = seen.tookUs - stepCount * besideUs - restUs
    // A prompt that took no time of its own was cached, or the step was nearly over.
    const y = Math.max(aloneUs, seen.tookUs / 4)
    const x = readTerms(toReadTokens, cachedTokens)
    this.#choice.sawRead(x, y)
    this.#read.fade(keepOf(now - this.#readAt))
    this.#readAt = now
    const expectedUs = this.#read.predict(x) + stepCount * besideUs + restUs
    this.#firstTokenError.observe(now, seen.tookUs / Math.max(1, expectedUs), 1)
    // How much of the prompts before it was read already, nobody sees: what is mostly theirs says little of the length.
    const ratio = this.#read.observe(x, y, (Math.max(1, seen.uncachedTokens) / toReadTokens) ** 2)
    this.#rescale()
    const factor = this.#readChange.observe(now, ratio, 1)
    if (factor !== undefined) this.#startOver(this.#read, factor)
  }

  /** What was taken for the reading of prompts was something else. */
  forgetReading(): void {
    this.#read.fade(0)
    this.#read.setPrior(this.#choice.prior.read)
  }

  /** A mark of the sums at this instant. An instant before the last note is taken as if the load had been the same. */
  openStretch(now: Instant, tokens: number): Stretch {
    const idleUs = now - this.#notedAt
    return {
      at: now,
      tokens,
      sequenceUs: this.#sequenceUs + this.#sequences * idleUs,
      contextTokenUs: this.#contextTokenUs + this.#contextTokens * idleUs,
      readTokens: this.#readTokens,
    }
  }

  /** An answer has come to this many tokens: a row of decoding, and the next stretch begins. */
  closeStretch(now: Instant, stretch: Stretch, tokens: number): void {
    this.closeAt(stretch, this.openStretch(now, tokens))
  }

  /** As `closeStretch`, at a mark that was made earlier. Without tokens or time the stretch goes on. */
  closeAt(stretch: Stretch, end: Stretch): void {
    const gained = end.tokens - stretch.tokens
    const tookUs = end.at - stretch.at
    if (gained <= 0 || tookUs <= 0) return
    const sequences = (end.sequenceUs - stretch.sequenceUs) / tookUs
    const contextTokens = (end.contextTokenUs - stretch.contextTokenUs) / tookUs
    const promptTokens = (end.readTokens - stretch.readTokens) / gained
    Object.assign(stretch, end)
    this.#observeDecode(end.at, [1, Math.max(1, sequences), contextTokens, promptTokens], tookUs / gained, gained)
  }

  #observeDecode(now: Instant, x: readonly number[], tokenUs: number, tokens: number): void {
    // A short stretch says little, a very long one not more than a few dozens of tokens.
    const weight = Math.min(1, tokens / WHOLE_ROW_TOKENS)
    this.#choice.sawDecode(x, tokenUs)
    this.#decode.fade(keepOf(now - this.#decodeAt))
    this.#decodeAt = now
    const ratio = this.#decode.observe(x, tokenUs, weight)
    this.#rows++
    this.#tokenError.observe(now, ratio, weight)
    this.#sequencesSeen = Math.max(this.#sequencesSeen, x[1]!)
    this.#rescale()
    const factor = this.#decodeChange.observe(now, ratio, weight)
    if (factor === undefined) return
    this.#startOver(this.#decode, factor)
    this.#sequencesSeen = 0
  }

  /** The prior's proportions, at the size that was seen. */
  #rescale(): void {
    if (!this.#choice.isNew()) return
    const { prior, scale } = this.#choice
    this.#decode.setPrior(prior.decode.map((coefficient) => coefficient * scale.decode))
    this.#read.setPrior(prior.read.map((coefficient) => coefficient * scale.read))
  }

  /** The engine has become another: what it showed before fades, and what was known, scaled, is the prior. */
  #startOver(fit: FadingFit, factor: number): void {
    fit.setPrior(priorFrom(fit, factor))
    fit.fade(TWIN_DEFAULTS.changeKeep)
    this.#choice.settle()
    this.#changes++
  }
}

type Four = [number, number, number, number]

/** Sequences of an engine that is full: most GPUs gain little beyond them. */
const FULL_SEQUENCES = 192
/** Tokens of a stretch that count as a whole row. */
const WHOLE_ROW_TOKENS = 32
/** What is left of a prior's coefficient that the rows spoke against. */
const LEAST_RATIO = 0.01

/** What was learned, as a prior. A coefficient that was left out gets back a small part: a prior needs a scale. */
function priorFrom(fit: FadingFit, factor = 1): readonly number[] {
  const { prior } = fit
  return fit.coefficients().map((coefficient, i) => factor * Math.max(coefficient, LEAST_RATIO * prior[i]!))
}

/** Asked several times for each request: it allocates nothing. */
function stepUsOf(
  coefficients: readonly number[],
  sequences: number,
  contextTokens: number,
  prefillTokens: number,
): number {
  const c = coefficients as Four
  return c[0] + c[1] * sequences + c[2] * contextTokens + c[3] * prefillTokens
}

/** By time and by rows, whichever forgets more. */
function keepOf(elapsedUs: number): number {
  const { memoryUs, memoryRows } = TWIN_DEFAULTS
  return Math.min(memoryUs / (memoryUs + Math.max(0, elapsedUs)), memoryRows / (memoryRows + 1))
}
