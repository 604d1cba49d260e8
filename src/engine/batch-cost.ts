import type { StepCoefficients } from './gpu-profile.ts'
import { stepUs } from './step-time.ts'

/**
 * What does a batch of a given size cost? A curve of measured sizes with the time each takes, straight lines between
 * them, the last slope beyond.
 *
 * Where nobody has measured, an encoder (embeddings, ranking) is a transformer that only prefills: its curve follows
 * from the step-time formula of a generative model of its size.
 */
export interface BatchCost {
  readonly size: number
  readonly us: number
}

export function batchUs(curve: readonly BatchCost[], size: number): number {
  const last = curve.length - 1
  const above = curve.findIndex((point) => point.size >= size)
  const index = above < 0 ? last : Math.max(1, above)
  const from = curve[index - 1]
  const to = curve[index]
  // One point is no line: the cost does not depend on the size.
  if (from === undefined || to === undefined) return (curve[0] as BatchCost).us
  return Math.max(0, from.us + ((size - from.size) * (to.us - from.us)) / (to.size - from.size))
}

export function encoderCostCurve(
  coefficients: StepCoefficients,
  options: { tokensPerItem: number; batchSizeMax: number },
): readonly BatchCost[] {
  const { tokensPerItem, batchSizeMax } = options
  const curve: BatchCost[] = []
  for (let size = 1; size < 2 * batchSizeMax; size *= 2) {
    const prefillTokens = size * tokensPerItem
    const chunkPairs = (size * tokensPerItem * tokensPerItem) / 2
    const load = {
      decodeCount: 0,
      decodeTokens: 0,
      contextSum: 0,
      contextMax: 0,
      prefillTokens,
      chunkPairs,
      contextPairs: 0,
    }
    curve.push({ size, us: Math.round(stepUs(coefficients, load)) })
  }
  return curve
}
