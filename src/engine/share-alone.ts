import type { StepCoefficients } from './gpu-profile.ts'
import type { StepTime } from './step-time.ts'

/**
 * What would a sequence have taken without the others? The same chunks and the same tokens, each in a step of its own:
 * what batching saved is that time less the sequence's share. And what would its cached tokens have taken?
 */
export interface DecodeAlone {
  readonly baseUs: number
  readonly contextTokenUs: number
  readonly floorUs: number
}

/** A decode step of one sequence is a straight line over its context, above a floor. */
export function decodeAloneOf(c: StepCoefficients, stepTime: StepTime): DecodeAlone {
  if (c.kind === 'reference') return { baseUs: 1e6 / c.decodeTokensPerSecond, contextTokenUs: 0, floorUs: 0 }
  const besideUs = c.lmHeadUs + c.hostUs + c.allReduceBaseUs + c.allReduceUsPerToken
  return {
    baseUs: stepTime.kneeUsOf(1) + besideUs + c.decodeBaseUs + c.decodeUsPerSequence,
    contextTokenUs: Math.max(c.kvReadUsPerToken, c.contextUsPerToken),
    floorUs: c.decodeFloorUs,
  }
}

/** `steps` decode steps alone, the first at this context. */
export function decodeAloneUs(alone: DecodeAlone, contextTokens: number, steps: number): number {
  const { baseUs, contextTokenUs, floorUs } = alone
  const firstUs = baseUs + contextTokenUs * contextTokens
  const floored =
    firstUs >= floorUs
      ? 0
      : contextTokenUs === 0
        ? steps
        : Math.min(steps, Math.ceil((floorUs - firstUs) / contextTokenUs))
  const above = steps - floored
  const fromUs = firstUs + contextTokenUs * floored
  return floored * floorUs + above * fromUs + (contextTokenUs * above * (above - 1)) / 2
}

/** A chunk in a step of its own. */
export function chunkAloneUs(c: StepCoefficients, stepTime: StepTime, tokens: number, contextTokens: number): number {
  if (c.kind === 'reference') return (1e6 * tokens) / c.prefillTokensPerSecond
  const besideUs = c.lmHeadUs + c.hostUs + c.allReduceBaseUs + c.allReduceUsPerToken * tokens + c.prefillBaseUs
  const pairsUs = (c.attentionUsPerPair * tokens * tokens) / 2 + c.contextAttentionUsPerPair * tokens * contextTokens
  const us = stepTime.kneeUsOf(tokens) + besideUs + pairsUs
  if (c.prefillFloorUs === 0) return us
  const floorSquare = c.prefillFloorUs * c.prefillFloorUs
  // Fitted floors have this sharpness; two roots take a tenth of the time of two powers.
  if (c.prefillFloorSharpness === 4) return Math.sqrt(Math.sqrt(floorSquare * floorSquare + us * us * (us * us)))
  return (c.prefillFloorUs ** c.prefillFloorSharpness + us ** c.prefillFloorSharpness) ** (1 / c.prefillFloorSharpness)
}

/** What reading cached tokens would have added to steps that run anyway: compute and attention, no weights. */
export function prefixSavedUs(c: StepCoefficients, cachedTokens: number): number {
  if (c.kind === 'reference') return (1e6 * cachedTokens) / c.prefillTokensPerSecond
  const perToken = c.computeUsPerToken + c.allReduceUsPerToken
  return perToken * cachedTokens + (c.attentionUsPerPair * cachedTokens * cachedTokens) / 2
}
