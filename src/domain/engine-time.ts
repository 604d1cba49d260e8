/**
 * What one sequence took of its engine's time so far. The parts `prefillUs`, `decodeUs` and `againUs` of all sequences of
 * an engine add up to the time that its steps took (`engine/step-share.ts`). Microseconds; sums that only grow.
 */
export interface EngineTime {
  /** Reading the prompt. */
  readonly prefillUs: number
  /** Making the answer. */
  readonly decodeUs: number
  /** Reading once more what a preemption threw away. */
  readonly againUs: number
  /** What the same steps would have taken with this sequence alone in them. */
  readonly aloneUs: number
  /** What reading the cached part of the prompt would have taken, beside the others. */
  readonly prefixSavedUs: number
  /** Tokens held in KV memory × microseconds, over the steps in which the sequence took part. */
  readonly kvTokenUs: number
}

export const NO_ENGINE_TIME: EngineTime = {
  prefillUs: 0,
  decodeUs: 0,
  againUs: 0,
  aloneUs: 0,
  prefixSavedUs: 0,
  kvTokenUs: 0,
}

export const spentUs = ({ prefillUs, decodeUs, againUs }: EngineTime): number => prefillUs + decodeUs + againUs

export function addEngineTimes(a: EngineTime, b: EngineTime): EngineTime {
  return {
    prefillUs: a.prefillUs + b.prefillUs,
    decodeUs: a.decodeUs + b.decodeUs,
    againUs: a.againUs + b.againUs,
    aloneUs: a.aloneUs + b.aloneUs,
    prefixSavedUs: a.prefixSavedUs + b.prefixSavedUs,
    kvTokenUs: a.kvTokenUs + b.kvTokenUs,
  }
}
