/** Ranks of scores: how well do they part positives from negatives? */
export interface Roc {
  readonly auc: number
  readonly recallAt1: number
  readonly recallAt01: number
}

export function rocOf(positives: readonly number[], negatives: readonly number[]): Roc {
  const sorted = Float64Array.from(negatives).sort()
  let sum = 0
  for (const score of positives) {
    const below = countBelow(sorted, score, false)
    sum += below + (countBelow(sorted, score, true) - below) / 2
  }
  return {
    auc: sum / (positives.length * sorted.length),
    recallAt1: recallAbove(positives, thresholdAt(negatives, 0.01)),
    recallAt01: recallAbove(positives, thresholdAt(negatives, 0.001)),
  }
}

/** The least score that at most this share of the negatives is above. */
export function thresholdAt(negatives: readonly number[], falseRatio: number): number {
  const sorted = Float64Array.from(negatives).sort()
  return sorted[sorted.length - 1 - Math.floor(sorted.length * falseRatio)] ?? Infinity
}

export function recallAbove(scores: readonly number[], threshold: number): number {
  let above = 0
  for (const score of scores) if (score > threshold) above++
  return above / scores.length
}

function countBelow(sorted: Float64Array, score: number, withEqual: boolean): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    const value = sorted[middle] as number
    if (value < score || (withEqual && value === score)) low = middle + 1
    else high = middle
  }
  return low
}
