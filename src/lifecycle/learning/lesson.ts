import type { Instant } from '../../base/clock.ts'
import type { Usage } from '../../domain/delta.ts'
import type { Estimate } from '../../domain/plan.ts'
import { type Load, prefillTokensOf } from '../../policy/limits/ledger.ts'
import type { Stretch } from '../../policy/twin/engine-twin.ts'
import type { LearnedReplica, Twins } from '../../policy/twin/twins.ts'

/**
 * What do one attempt's times say about its engine's steps? The twin of its replica (`policy/twin`) hears of the turn, of
 * the first token, of every stretch of the answer and of the end, with what was in flight at that instant.
 */

/** Microseconds and tokens of a stretch at least: several frames of an engine that gathers its tokens. */
const STRETCH_US_MIN = 300_000
const STRETCH_TOKENS_MIN = 24
/**
 * Frames that come within this many microseconds of a first one were read together: tokens of one arrival. Less than two
 * tokens of a fast engine, and more than it takes to handle some dozens of frames.
 */
const ARRIVAL_US = 2_000

interface StreamTimes {
  readonly firstTokenAt: Instant | undefined
  readonly lastTokenAt: Instant | undefined
}

type Prompt = Pick<Usage, 'promptTokens' | 'cachedTokens'>

export class Lesson {
  readonly #twins: Twins
  readonly #known: LearnedReplica
  readonly #load: Load
  readonly #estimate: Estimate
  readonly #grantedAt: Instant
  /** As the attempt met it: others in flight, their context, prompts before its own. */
  readonly #sequences: number
  readonly #contextTokens: number
  readonly #aheadTokens: number
  #stretch: Stretch | undefined
  /** Where the stretch ends, while further tokens of the same arrival may come. */
  #end: Stretch | undefined
  /** From the turn to the first token, where the row of reading waits for the usage. */
  #firstTokenUs: number | undefined

  /** At the attempt's turn: `load` has it already, and stays true. */
  constructor(
    now: Instant,
    { twins, replicaId, estimate, load }: { twins: Twins; replicaId: string; estimate: Estimate; load: Load },
  ) {
    this.#twins = twins
    this.#known = twins.of(replicaId)
    this.#load = load
    this.#estimate = estimate
    this.#grantedAt = now
    this.#known.twin.note(now, load)
    this.#sequences = Math.max(0, load.sequences - 1)
    this.#contextTokens = Math.max(0, load.contextTokens - estimate.promptTokens - estimate.outputTokens / 2)
    this.#aheadTokens = Math.max(0, load.prefillTokens - prefillTokensOf(estimate))
  }

  /** The first token has come, and `tokens` with it; it was expected after `expectedUs`. */
  begun(now: Instant, tokens: number, expectedUs: number | undefined): void {
    const { twin, ceiling } = this.#known
    const tookUs = now - this.#grantedAt
    twin.note(now, this.#load)
    // An engine that reports what it had cached does so at the end: until then its prompt may have been half as long.
    if (this.#twins.cache.hasReported) this.#firstTokenUs = tookUs
    else this.#teachReading(now, tookUs, this.#estimate)
    if (expectedUs !== undefined && twin.isTrusted)
      ceiling.begun(now, tookUs / Math.max(1, expectedUs), this.#sequences + 1)
    this.#stretch = twin.openStretch(now, tokens)
  }

  #teachReading(now: Instant, tookUs: number, { promptTokens, cachedTokens }: Prompt): void {
    this.#known.twin.begun(now, {
      uncachedTokens: Math.max(0, promptTokens - cachedTokens),
      cachedTokens,
      aheadTokens: this.#aheadTokens,
      sequences: this.#sequences,
      contextTokens: this.#contextTokens,
      tookUs,
    })
  }

  /**
   * The answer has come to so many tokens. A stretch goes from the end of one arrival to the end of another; else the
   * tokens that were read together with its last one would count as the next stretch's, which took no time.
   */
  grown(now: Instant, tokens: number): void {
    const { twin } = this.#known
    const last = this.#end ?? this.#stretch
    if (last === undefined) return
    if (now - last.at < ARRIVAL_US) {
      last.tokens = tokens
      return
    }
    this.#closeAtEnd()
    const stretch = this.#stretch
    if (stretch === undefined || now - stretch.at < STRETCH_US_MIN) return
    if (tokens - stretch.tokens >= STRETCH_TOKENS_MIN) this.#end = twin.openStretch(now, tokens)
  }

  #closeAtEnd(): void {
    const { twin } = this.#known
    const end = this.#end
    if (this.#stretch === undefined || end === undefined) return
    twin.closeAt(this.#stretch, end)
    this.#end = undefined
    this.#twins.learned(twin)
  }

  /** Its tokens turned out to be so many times what was counted: the stretch that is open began in the old count. */
  trueUp(ratio: number): void {
    if (this.#stretch !== undefined) this.#stretch.tokens *= ratio
    if (this.#end !== undefined) this.#end.tokens *= ratio
  }

  /** A stream has ended whole: was it handed over as it was made? */
  streamed(now: Instant, { firstTokenAt, lastTokenAt }: StreamTimes, tokens: number): void {
    if (firstTokenAt === undefined || lastTokenAt === undefined) return
    const seen = { firstTokenUs: firstTokenAt - this.#grantedAt, restUs: lastTokenAt - firstTokenAt, tokens }
    if (!this.#twins.buffered.observe(now, seen)) return
    for (const { twin } of this.#twins.all().values()) twin.forgetReading()
  }

  /** The attempt is over, and its lease is back; its last token came at `lastTokenAt`. `usage` is what the engine reports. */
  over(now: Instant, lastTokenAt: Instant | undefined, tokens: number, usage?: Prompt): void {
    const { twin } = this.#known
    if (this.#firstTokenUs !== undefined) this.#teachReading(now, this.#firstTokenUs, usage ?? this.#estimate)
    if (usage !== undefined) {
      const { cachedTokens: expectedTokens } = this.#estimate
      this.#twins.cache.observe(now, { expectedTokens, reportedTokens: usage.cachedTokens })
    }
    this.#closeAtEnd()
    const stretch = this.#stretch
    if (stretch !== undefined && lastTokenAt !== undefined && lastTokenAt - stretch.at >= ARRIVAL_US)
      twin.closeStretch(lastTokenAt, stretch, tokens)
    twin.note(now, this.#load)
    this.#twins.learned(twin)
  }
}
