import type { Instant } from '../../base/clock.ts'

/**
 * How many tokens does an engine's KV memory hold?
 *
 * Where the engine tells (vLLM, SGLang, TensorRT-LLM), that is it. Where the engine tells only what share of its memory is
 * in use, the tokens that we hold there, divided by the share, are a guess: as large as the answers of many requests are
 * on the average of their lives, and in our own terms (a prefix that two requests share counts for both, here as in the
 * ledger). A guess counts only
 *
 *   - when the share is large enough to divide by;
 *   - when some sequences run, and as many as we hold: else others use the memory too, or ours wait and use none.
 *
 * Of the last minute's guesses the upper quartile counts: what disturbs a guess (cached tokens that an engine counts as in
 * use, the end of a burst) mostly makes it too small. Without a fresh guess for minutes, or where the engine told it and does
 * not any more, the capacity is unknown again, so that a wrong one, under which the memory never fills, does not last.
 *
 * Deliberately not: a guess never says that a request is too big; it only says how many go together.
 * Laws: unknown until told or guessed `samplesMin` times; at most `samplesMax` guesses are kept.
 * Example: 20 sequences of 1,100 tokens on the average, and 0.25 of the memory in use: 88,000 tokens.
 */
export const KV_METER_DEFAULTS = {
  /** Share of the memory in use from which it is divided by. */
  usageMin: 0.2,
  sequencesMin: 4,
  /** Sequences that run beside those that we hold, or that we hold beside those that run, as a share of ours. */
  strangersMax: 0.1,
  /** Guesses from which there is a capacity, and guesses that are kept: one a second. */
  samplesMin: 8,
  samplesMax: 64,
  quantile: 0.75,
  /** Microseconds without a guess, or without being told, after which the capacity is unknown again. */
  memoryUs: 300_000_000,
  /** A capacity moves when the guesses have moved by this share: below it is noise. */
  changeMin: 0.03,
} as const

export interface KvCapacity {
  readonly tokensMax: number
  /** The engine said so; else guessed. */
  readonly isTold: boolean
}

/** What the engine reports; absent is unknown. */
export interface KvReport {
  readonly runningCount?: number | undefined
  readonly waitingCount?: number | undefined
  readonly kvUsageRatio?: number | undefined
  readonly kvTokensMax?: number | undefined
}

/** What we hold at the engine. */
export interface KvHoldings {
  readonly held: number
  /** Tokens of context that ours have on the average of their lives. */
  readonly heldContextTokens: number
}

export class KvMeter {
  #capacity: KvCapacity | undefined
  #guesses: number[] = []
  #guessedAt: Instant = 0
  #countsCache = false

  get capacity(): KvCapacity | undefined {
    return this.#capacity
  }

  /**
   * Whether the share in use says nothing of what runs: when the engine last ran nothing, much was in use all the same, so
   * it counts what it has cached (llama.cpp's slots keep their prompts) or the gauge is broken.
   */
  get countsCache(): boolean {
    return this.#countsCache
  }

  /** What is told may be remembered from before a restart; the engine corrects it with its first report. */
  remember(now: Instant, capacity: KvCapacity): void {
    this.#capacity = capacity
    this.#guessedAt = now
  }

  /** True when the capacity has changed. */
  report(now: Instant, report: KvReport, holdings: KvHoldings): boolean {
    const { kvTokensMax } = report
    this.#noteIdle(report)
    if (kvTokensMax !== undefined && kvTokensMax > 0) {
      this.#guessedAt = now
      return this.#set({ tokensMax: kvTokensMax, isTold: true })
    }
    // Another engine may be there now, which tells nothing.
    if (this.#capacity?.isTold === true) return this.#forget(now)
    const guess = this.#countsCache ? undefined : guessOf(report, holdings)
    return guess === undefined ? this.#forget(now) : this.#learn(now, guess)
  }

  #noteIdle({ runningCount, waitingCount = 0, kvUsageRatio }: KvReport): void {
    if (runningCount !== 0 || waitingCount !== 0 || kvUsageRatio === undefined) return
    this.#countsCache = kvUsageRatio >= KV_METER_DEFAULTS.usageMin
  }

  #learn(now: Instant, guess: number): boolean {
    const { samplesMin, samplesMax, quantile, changeMin } = KV_METER_DEFAULTS
    this.#guessedAt = now
    this.#guesses.push(guess)
    if (this.#guesses.length > samplesMax) this.#guesses.shift()
    if (this.#guesses.length < samplesMin) return false
    const sorted = this.#guesses.toSorted((a, b) => a - b)
    const tokensMax = Math.round(sorted[Math.floor(quantile * (sorted.length - 1))]!)
    const before = this.#capacity?.tokensMax
    if (before !== undefined && Math.abs(tokensMax / before - 1) < changeMin) return false
    return this.#set({ tokensMax, isTold: false })
  }

  #forget(now: Instant): boolean {
    if (this.#capacity === undefined || now - this.#guessedAt < KV_METER_DEFAULTS.memoryUs) return false
    this.#guesses = []
    this.#capacity = undefined
    return true
  }

  #set(capacity: KvCapacity): boolean {
    const before = this.#capacity
    if (before?.tokensMax === capacity.tokensMax && before.isTold === capacity.isTold) return false
    this.#capacity = capacity
    return true
  }
}

function guessOf(report: KvReport, { held, heldContextTokens }: KvHoldings): number | undefined {
  const { usageMin, sequencesMin, strangersMax } = KV_METER_DEFAULTS
  const { runningCount, waitingCount, kvUsageRatio } = report
  if (kvUsageRatio === undefined || kvUsageRatio < usageMin || runningCount === undefined) return undefined
  if (held < sequencesMin || Math.abs(runningCount - held) > held * strangersMax) return undefined
  if (waitingCount !== undefined && waitingCount > held * strangersMax) return undefined
  return heldContextTokens / kvUsageRatio
}
