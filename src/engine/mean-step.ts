import type { StepModel } from '../domain/engine-speed.ts'
import { type StepLoad, type StepTime, TICKS_PER_US } from './step-time.ts'

/**
 * How long does a step take on the average of many?
 *
 * Prompts come in chunks, not evenly. On the average of many steps each step brings its part of the time that a chunk
 * adds to a step, so a mean step is a decode step plus prompt tokens at the price that they have inside a chunk.
 */
const CHUNK_TOKENS = 1_024

export const IDLE_STEP: StepLoad = {
  decodeCount: 0,
  decodeTokens: 0,
  contextSum: 0,
  contextMax: 0,
  prefillTokens: 0,
  chunkPairs: 0,
  contextPairs: 0,
}

export function meanStepUsOf(stepTime: StepTime, tokenBudget: number): StepModel['meanTokenUs'] {
  const load = { ...IDLE_STEP }
  const pace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
  const stepUs = (): number => {
    stepTime.paceOf(load, pace)
    return pace.ticks / TICKS_PER_US
  }
  const chunkTokens = Math.min(CHUNK_TOKENS, tokenBudget)
  // Per prompt token, by the number of sequences beside it; asked for at every turn, so computed once.
  const extraUsPerToken: number[] = []
  const decode = (sequences: number, contextTokens: number): number => {
    load.decodeCount = sequences
    load.decodeTokens = sequences
    load.contextSum = contextTokens
    load.contextMax = contextTokens / Math.max(1, sequences)
    load.prefillTokens = 0
    load.chunkPairs = 0
    return stepUs()
  }
  const extra = (sequences: number): number => {
    const withoutUs = decode(sequences, 0)
    load.prefillTokens = Math.max(1, chunkTokens - sequences)
    load.chunkPairs = load.prefillTokens ** 2 / 2
    return Math.max(0, stepUs() - withoutUs) / load.prefillTokens
  }
  return (sequences, contextTokens, prefillTokens) => {
    extraUsPerToken[sequences] ??= extra(sequences)
    return decode(sequences, contextTokens) + Math.min(prefillTokens, tokenBudget) * extraUsPerToken[sequences]
  }
}
