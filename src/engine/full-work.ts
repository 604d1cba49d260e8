import type { EngineOptions } from './engine.ts'
import type { EngineCounters } from './engine-state.ts'
import { meanStepUsOf } from './mean-step.ts'
import { StepTime } from './step-time.ts'

/**
 * How much of an engine's time does this work take, where the engine is full?
 *
 * A step streams the weights once, however many sequences ride along. One sequence alone keeps an engine busy all the
 * time and gets a small part of the work done that the engine could do. So work is counted at the price that it has in
 * a full step: the time of a step with many sequences, divided by their number, plus the reading of their contexts,
 * plus what a prompt token adds to such a step. Busy time says that an engine has something to do. Work ÷ elapsed time
 * says how much of what it could do it does.
 *
 * The prices stay a little below what the best mix of prompts and answers could reach, and above what memory allows
 * when contexts are very long: a full engine shows 0.8 to 1.1.
 *
 * Example, `h100-llama-8b`: a step of 192 sequences without context takes 7.5 ms, so an output token costs 39 µs. One
 * sequence alone makes a token every 6.3 ms: busy 1.00, work 0.016.
 */

/** Sequences of an engine that is full: most GPUs gain little beyond them. */
const FULL_SEQUENCES = 192

/** Microseconds of a full engine's time. */
export interface FullWorkPrices {
  readonly promptTokenUs: number
  readonly outputTokenUs: number
  /** For each output token and each token of context that it reads. */
  readonly contextTokenUs: number
}

/** Tokens of context from which the slope is taken: a step grows in a straight line with them. */
const CONTEXT_TOKENS = 1_000

export function fullWorkPrices({ coefficients, limits }: EngineOptions): FullWorkPrices {
  const { tokenBudget, sequencesMax } = limits
  const stepUs = meanStepUsOf(new StepTime(coefficients, tokenBudget), tokenBudget)
  const sequences = Math.min(sequencesMax, FULL_SEQUENCES)
  const emptyUs = stepUs(sequences, 0, 0)
  const outputTokenUs = emptyUs / sequences
  const readingUs = stepUs(sequences, sequences * CONTEXT_TOKENS, 0)
  return {
    promptTokenUs: (stepUs(sequences, 0, tokenBudget) - emptyUs) / tokenBudget,
    outputTokenUs,
    contextTokenUs: readingUs / sequences / CONTEXT_TOKENS - outputTokenUs / CONTEXT_TOKENS,
  }
}

export function fullWorkUs(
  prices: FullWorkPrices,
  done: Pick<EngineCounters, 'promptTokens' | 'generationTokens' | 'contextTokens'>,
): number {
  const { promptTokenUs, outputTokenUs, contextTokenUs } = prices
  return done.promptTokens * promptTokenUs + done.generationTokens * outputTokenUs + done.contextTokens * contextTokenUs
}
