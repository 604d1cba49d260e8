import type { StepCoefficients } from './gpu-profile.ts'
import { constantAcceptance, type Speculation } from './speculation.ts'
import { stepUs } from './step-time.ts'

/**
 * Drafters that were measured on vLLM, Llama 3.1 8B. What a drafter costs follows from its size: one draft token streams
 * the drafter's weights, as one decode step streams the model's.
 *
 * Acceptance depends on the text more than on anything else: these are one benchmark each, not a promise.
 */
interface Drafter {
  readonly acceptance: readonly number[]
  /** The drafter's weights ÷ the model's. */
  readonly weightsRatio: number
}

const DRAFTERS: Readonly<Record<string, Drafter>> = {
  // One decoder layer and the model's output layer; code edits, greedy, 3 draft tokens (vllm-project/vllm#24344).
  eagle: { acceptance: [0.77, 0.45, 0.24], weightsRatio: 0.092 },
  // One wider layer and an output layer cut to 32,000 words; MT-bench, greedy, 7 draft tokens: 3.53 tokens a step on
  // average (vllm-project/vllm#26191), which is what 0.743 at each position comes to.
  eagle3: { acceptance: constantAcceptance(7, 0.743), weightsRatio: 0.045 },
  // Words looked up in the prompt; code edits (vllm-project/vllm#24344). A draft is found in 55 % of the steps; these
  // are the rates there times that share.
  ngram: { acceptance: [0.443, 0.405, 0.383, 0.372, 0.361], weightsRatio: 0 },
}

export function findSpeculation(name: string, coefficients: StepCoefficients): Speculation | undefined {
  const drafter = DRAFTERS[name]
  if (drafter === undefined) return undefined
  const alone = { decodeCount: 1, decodeTokens: 1, contextSum: 0, contextMax: 0 }
  const decodeUs = stepUs(coefficients, { ...alone, prefillTokens: 0, chunkPairs: 0, contextPairs: 0 })
  return {
    draftTokens: drafter.acceptance.length,
    acceptance: drafter.acceptance,
    draftUsPerToken: drafter.weightsRatio * decodeUs,
    draftUsPerSequenceToken: 0,
  }
}

export function speculationNames(): readonly string[] {
  return Object.keys(DRAFTERS)
}
