import type { EngineSpeed } from '../../domain/engine-speed.ts'

/**
 * How much work is it?
 *
 * Two units. *Weighted tokens*, uncached input + w · output, are what fairness counts in: a generated token occupies
 * an engine several times longer than a prompt token, whence w = 4 (VTC takes 2; compare with that paper at 2).
 * *Engine microseconds* are what deadlines need:
 * the time to the first token, and from there to the last. They come from the step-time model of the pool's engines
 * through the narrow interface below, because policy may not import the engine.
 *
 * Cached input is free here: an engine that holds the prefix reads it in microseconds. Costs are whole numbers, so
 * that sums of backlogs neither drift nor depend on the order of adding.
 *
 * Example: 1,000 prompt tokens of which 600 are cached, 120 output tokens: 400 + 4 · 120 = 880 weighted tokens. At
 * 20 µs a prompt token and 12 ms a step: 400 · 20 µs + 120 · 12 ms = 1.448 s.
 */
export const COST_DEFAULTS = {
  /** Prompt tokens that one output token is worth. */
  outputWeight: 4,
}

export interface Work {
  readonly promptTokens: number
  readonly cachedTokens: number
  /** Over all choices. */
  readonly outputTokens: number
}

/** Weighted tokens of predicted or of measured work: `Estimate` and `Usage` both fit. At least 1: nothing is free. */
export function weightedTokens(work: Work, outputWeight = COST_DEFAULTS.outputWeight): number {
  const uncachedTokens = Math.max(0, work.promptTokens - work.cachedTokens)
  return Math.max(1, Math.round(uncachedTokens + outputWeight * work.outputTokens))
}

/** Weighted tokens of work that may not have been done: without a token it costs nothing. */
export function servedCost(work: Work, outputWeight = COST_DEFAULTS.outputWeight): number {
  return work.promptTokens > 0 || work.outputTokens > 0 ? weightedTokens(work, outputWeight) : 0
}

/** From its turn to the last token; choices of one request decode side by side, so only one of them counts. */
export function engineUs(speed: EngineSpeed, work: Work & { readonly choiceCount: number }): number {
  const uncachedTokens = Math.max(0, work.promptTokens - work.cachedTokens)
  const outputTokens = work.outputTokens / work.choiceCount
  // The first token comes out of the prefill; the rest see a context that grows from the prompt's length on.
  const decodeUs = Math.max(0, outputTokens - 1) * speed.tokenUs(work.promptTokens + Math.round(outputTokens / 2))
  return Math.round(speed.prefillUs(uncachedTokens, work.cachedTokens) + decodeUs)
}

/** An engine known only by two numbers, as those that report nothing are, and as tests like it. */
export function makeConstantSpeed(known: {
  readonly prefillUsPerToken: number
  readonly tokenUs: number
}): EngineSpeed {
  return {
    prefillUs: (uncachedTokens) => Math.round(uncachedTokens * known.prefillUsPerToken),
    tokenUs: () => known.tokenUs,
  }
}
