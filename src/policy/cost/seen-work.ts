import type { Instant } from '../../base/clock.ts'
import type { EngineTime } from '../../domain/engine-time.ts'

/**
 * How much of an engine's time does an attempt take, as far as a gateway can see?
 *
 * A gateway does not see steps. It sees tokens come, and knows how many others were in flight when they came. With the
 * step times that the replica's twin has learned (`policy/twin`: base + per sequence + per token of context + per prompt
 * token) the closed form of `engine/step-share.ts` becomes
 *
 *     a token      base / N + sequence + context · x          N sequences that decode when it comes, x its context
 *     a prompt     prompt token · q + pair · (q²/2 + q·x) + base / N for each step that reads a part of it
 *
 * N changes while tokens come. So the replica keeps one running integral, ∫ dt/N, and an attempt that is looked at once a
 * second takes its mean since the last look: no work per token. What is estimated so is a weight: the owner of the second
 * scales all weights to the time in which something was in flight.
 *
 * Answers that say nothing before their end (in one piece, or gathered) are taken to make tokens at the twin's pace, and
 * put right when they end. Engines without step times (vectors, scores) share the time in flight equally.
 *
 * Example: base 6 ms, 3 µs a sequence, 0.04 µs a token of context; 30 others decode: a token at 1,000 tokens of context
 * weighs 6,000 / 31 + 3 + 40 = 237 µs, 25 times less than alone.
 */
export interface StepPrices {
  readonly baseUs: number
  readonly sequenceUs: number
  readonly contextTokenUs: number
  readonly promptTokenUs: number
  /** Per pair of tokens, one of them the prompt's. */
  readonly pairUs: number
  /** Prompt tokens of one step at most. */
  readonly tokenBudget: number
  /** From one token to the next with what is in flight now, prompts that are read meanwhile included. */
  readonly paceUs: number
}

/** What is in flight at one replica, over time. */
export class ReplicaSeen {
  #at: Instant
  #held = 0
  #decoding = 0
  #foreign = 0
  /** ∫ dt ÷ sequences that decode; ∫ dt ÷ all in flight; time with something in flight. */
  #perDecoding = 0
  #perHeld = 0
  #busyUs = 0
  #prices: StepPrices | undefined

  constructor(now: Instant) {
    this.#at = now
  }

  get prices(): StepPrices | undefined {
    return this.#prices
  }

  get busyUs(): number {
    return this.#busyUs
  }

  get held(): number {
    return this.#held
  }

  /** Once a second: what the twin says now, and what others have in flight there. */
  learn(now: Instant, prices: StepPrices | undefined, foreign: number): void {
    this.pass(now)
    this.#prices = prices
    this.#foreign = foreign
  }

  pass(now: Instant): void {
    const us = Math.max(0, now - this.#at)
    this.#at = Math.max(this.#at, now)
    if (us === 0) return
    this.#perDecoding += us / Math.max(1, this.#decoding + this.#foreign)
    if (this.#held === 0) return
    this.#perHeld += us / (this.#held + this.#foreign)
    this.#busyUs += us
  }

  hold(now: Instant, sequences: number): void {
    this.pass(now)
    this.#held += sequences
  }

  /** Its first token has come. */
  decode(now: Instant, sequences: number): void {
    this.pass(now)
    this.#decoding += sequences
  }

  drop(now: Instant, sequences: number, isDecoding: boolean): void {
    this.pass(now)
    this.#held -= sequences
    if (isDecoding) this.#decoding -= sequences
  }

  get perDecoding(): number {
    return this.#perDecoding
  }

  get perHeld(): number {
    return this.#perHeld
  }
}

export interface SeenSize {
  /** Sequences of the attempt: its choices. */
  readonly sequences: number
  readonly promptTokens: number
  readonly cachedTokens: number
  /** From the turn to the first token, as expected; for answers that do not say when it came. */
  readonly firstTokenUs: number | undefined
}

/** What the gateway knows of an attempt when it looks. */
export interface SeenProgress {
  readonly firstTokenAt: Instant | undefined
  readonly lastTokenAt: Instant | undefined
  /** Output tokens so far, over all choices. */
  readonly outputTokens: number
  readonly isOver: boolean
  /** Prompt and cached tokens as the engine told them at the end. */
  readonly usage: { readonly promptTokens: number; readonly cachedTokens: number } | undefined
}

/** One attempt at the replica, looked at once a second and at its end. */
export class SeenAttempt {
  readonly #replica: ReplicaSeen
  readonly #size: SeenSize
  readonly #grantedAt: Instant
  #at: Instant
  #perDecoding: number
  #perHeld: number
  #isRead = false
  #isPromptWeighed = false
  /** Tokens that were weighed; some of them only supposed. */
  #weighedTokens = 0
  #readAt: Instant = 0

  constructor(now: Instant, replica: ReplicaSeen, size: SeenSize) {
    replica.hold(now, size.sequences)
    this.#replica = replica
    this.#size = size
    this.#grantedAt = now
    this.#at = now
    this.#perDecoding = replica.perDecoding
    this.#perHeld = replica.perHeld
  }

  /** Its first token has come. */
  begun(now: Instant): void {
    if (this.#isRead) return
    this.#isRead = true
    this.#readAt = now
    this.#replica.decode(now, this.#size.sequences)
  }

  /** What it took since the last look. */
  look(now: Instant, progress: SeenProgress): EngineTime {
    const replica = this.#replica
    replica.pass(now)
    const { prices } = replica
    if (!this.#isRead && this.#isSupposedRead(now, progress)) this.begun(now)
    const time = prices === undefined ? this.#held() : this.#weigh(now, prices, progress)
    this.#at = now
    this.#perDecoding = replica.perDecoding
    this.#perHeld = replica.perHeld
    if (progress.isOver) replica.drop(now, this.#size.sequences, this.#isRead)
    return time
  }

  #isSupposedRead(now: Instant, { firstTokenAt, isOver, outputTokens }: SeenProgress): boolean {
    if (firstTokenAt !== undefined || (isOver && outputTokens > 0)) return true
    const { firstTokenUs } = this.#size
    return firstTokenUs !== undefined && now - this.#grantedAt >= 2 * firstTokenUs
  }

  #held(): EngineTime {
    const us = this.#size.sequences * (this.#replica.perHeld - this.#perHeld)
    return { ...NOTHING, prefillUs: us, aloneUs: us }
  }

  #weigh(now: Instant, prices: StepPrices, progress: SeenProgress): EngineTime {
    if (!this.#isRead) return NOTHING
    const isFirstLook = !this.#isPromptWeighed
    this.#isPromptWeighed = true
    const elapsedUs = now - this.#at
    const share = elapsedUs > 0 ? (this.#replica.perDecoding - this.#perDecoding) / elapsedUs : 1
    const prompt = progress.usage ?? this.#size
    const read = isFirstLook ? weighPrompt(prices, prompt, share) : NOTHING
    const tokens = this.#tokensSince(now, prices, progress)
    const { sequences } = this.#size
    const contextTokens = prompt.promptTokens + (this.#weighedTokens + tokens / 2) / sequences
    this.#weighedTokens += tokens
    const perToken = prices.sequenceUs + prices.contextTokenUs * contextTokens
    return {
      ...read,
      decodeUs: tokens * (prices.baseUs * share + perToken),
      aloneUs: read.aloneUs + tokens * (prices.baseUs + perToken),
      kvTokenUs: elapsedUs * contextTokens * sequences,
    }
  }

  /** Tokens that came, or that an answer which has said nothing since its first token should have made. */
  #tokensSince(now: Instant, { paceUs }: StepPrices, progress: SeenProgress): number {
    const { outputTokens, isOver, firstTokenAt, lastTokenAt } = progress
    const cameTokens = Math.max(0, outputTokens - this.#weighedTokens)
    if (isOver || lastTokenAt !== firstTokenAt) return cameTokens
    const silentUs = now - Math.max(this.#at, this.#readAt)
    return Math.max(cameTokens, (this.#size.sequences * silentUs) / Math.max(1, paceUs))
  }
}

const NOTHING: EngineTime = { prefillUs: 0, decodeUs: 0, againUs: 0, aloneUs: 0, prefixSavedUs: 0, kvTokenUs: 0 }

function weighPrompt(
  { baseUs, promptTokenUs, pairUs, tokenBudget }: StepPrices,
  { promptTokens, cachedTokens }: { readonly promptTokens: number; readonly cachedTokens: number },
  share: number,
): EngineTime {
  const tokens = Math.max(1, promptTokens - cachedTokens)
  const steps = Math.ceil(tokens / tokenBudget)
  const ownUs = promptTokenUs * tokens + pairUs * (tokens * tokens * 0.5 + tokens * cachedTokens)
  return {
    ...NOTHING,
    prefillUs: ownUs + steps * baseUs * share,
    aloneUs: ownUs + steps * baseUs,
    prefixSavedUs: promptTokenUs * cachedTokens + (pairUs * cachedTokens * cachedTokens) / 2,
  }
}
