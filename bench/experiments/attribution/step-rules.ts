import type { Rng } from '../../../src/base/rng.ts'
import type { RooflineCoefficients } from '../../../src/engine/gpu-profile.ts'
import { stepUs } from '../../../src/engine/step-time.ts'
import { loadOf, naiveShares, type StepMember } from '../../../test/support/naive-shares.ts'

/** Ways to split a step over its sequences, held against its Shapley values. */
export type Rule = 'closed form' | 'as if alone' | 'equal' | 'by tokens'

export const RULES: readonly Rule[] = ['closed form', 'as if alone', 'equal', 'by tokens']

export function splitBy(rule: Rule, c: RooflineCoefficients, members: readonly StepMember[]): readonly number[] {
  const us = stepUs(c, loadOf(members))
  if (rule === 'closed form') return naiveShares(c, members, us)
  const weights = members.map((member) => weightOf(rule, c, member))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => (us * weight) / sum)
}

function weightOf(rule: Exclude<Rule, 'closed form'>, c: RooflineCoefficients, member: StepMember): number {
  if (rule === 'equal') return 1
  return rule === 'by tokens' ? member.tokens : stepUs(c, loadOf([member]))
}

/** A step with so many sequences: decodes at drawn contexts, and in half of the steps prompts that are read beside them. */
export function drawStep(rng: Rng, sequences: number, chunksMax: number): StepMember[] {
  const between = (low: number, high: number): number => Math.floor(low + rng.next() * (high - low + 1))
  const chunks = rng.next() < 0.5 ? 0 : between(1, Math.min(chunksMax, sequences - 1))
  let budget = 2_048 - sequences
  return Array.from({ length: sequences }, (_, i) => {
    if (i >= chunks) return { tokens: 1, contextTokens: between(20, 8_000), isDecoding: true }
    const tokens = Math.min(between(16, 2_000), Math.max(16, budget))
    budget -= tokens
    return { tokens, contextTokens: rng.next() < 0.7 ? 0 : between(16, 4_000), isDecoding: false }
  })
}

/**
 * Shapley values of a step of many decodes and at most one chunk, without listing subsets. All terms of the model but the
 * knee are additive or constant, and the knee sees only how many decodes are there, and whether the chunk is: in a random
 * order j of the D − 1 other decodes come before one of them without the chunk with probability (D − j) / (D·(D + 1)), and
 * with it with probability (j + 1) / (D·(D + 1)); before the chunk come j decodes with probability 1 / (D + 1).
 */
export function shapleyOfMany(c: RooflineCoefficients, members: readonly StepMember[]): readonly number[] {
  const decodes = members.filter(({ isDecoding }) => isDecoding).length
  const chunk = members.find(({ isDecoding }) => !isDecoding)
  const q = chunk?.tokens ?? 0
  const fixedUs = c.lmHeadUs + c.hostUs + c.allReduceBaseUs
  const together = (tokens: number): number =>
    tokens === 0
      ? 0
      : (c.weightsUs ** c.kneeSharpness + (c.computeUsPerToken * tokens) ** c.kneeSharpness) ** (1 / c.kneeSharpness) +
        fixedUs +
        c.allReduceUsPerToken * tokens
  let decodeUs = 0
  let chunkUs = 0
  for (let j = 0; j < decodes; j++) {
    const alone = together(j + 1) - together(j)
    const beside = together(j + 1 + q) - together(j + q)
    decodeUs +=
      chunk === undefined ? alone / decodes : ((decodes - j) * alone + (j + 1) * beside) / (decodes * (decodes + 1))
  }
  for (let j = 0; j <= decodes; j++) chunkUs += (together(j + q) - together(j)) / (decodes + 1)
  return members.map(({ isDecoding, tokens, contextTokens }) =>
    isDecoding
      ? decodeUs + c.decodeBaseUs / decodes + c.decodeUsPerSequence + c.kvReadUsPerToken * contextTokens
      : chunkUs +
        c.prefillBaseUs +
        (c.attentionUsPerPair * tokens * tokens) / 2 +
        c.contextAttentionUsPerPair * tokens * contextTokens,
  )
}
