import type { StepCoefficients } from './gpu-profile.ts'
import { stepUs } from './step-time.ts'

/**
 * What does a batch cost? Two answers. A curve of measured sizes with the time each takes: straight lines between them,
 * the last slope beyond. Or, where nobody has measured, the step-time formula of a generative model of its size: an
 * encoder (embeddings, ranking, vision by patches) is a transformer that only prefills, so its time follows from the
 * tokens of its items, long ones costing more than short ones.
 */
export type BatchCost = (itemTokens: readonly number[]) => number

export interface MeasuredBatch {
  readonly size: number
  readonly us: number
}

/** At least one point, by rising size. */
export function curveCost(curve: readonly MeasuredBatch[]): BatchCost {
  return (itemTokens) => batchUs(curve, itemTokens.length)
}

export function batchUs(curve: readonly MeasuredBatch[], size: number): number {
  const last = curve.length - 1
  const above = curve.findIndex((point) => point.size >= size)
  const index = above < 0 ? last : Math.max(1, above)
  const from = curve[index - 1]
  const to = curve[index]
  // One point is no line: the cost does not depend on the size.
  if (from === undefined || to === undefined) return (curve[0] as MeasuredBatch).us
  return Math.max(0, from.us + ((size - from.size) * (to.us - from.us)) / (to.size - from.size))
}

/** An encoder attends both ways, but as many pairs are computed as in a causal prefill's kernels: half of the square. */
export function encoderCost(coefficients: StepCoefficients): BatchCost {
  return (itemTokens) => {
    let prefillTokens = 0
    let chunkPairs = 0
    for (const tokens of itemTokens) {
      prefillTokens += tokens
      chunkPairs += (tokens * tokens) / 2
    }
    const load = {
      decodeCount: 0,
      decodeTokens: 0,
      contextSum: 0,
      contextMax: 0,
      prefillTokens,
      chunkPairs,
      contextPairs: 0,
    }
    return stepUs(coefficients, load)
  }
}
