import type { EngineSpeed, PoolSpeed } from '../domain/engine-speed.ts'
import type { BatchOptions } from './batch-engine.ts'
import type { EngineOptions } from './engine.ts'
import { fullWorkPrices } from './full-work.ts'
import { IDLE_STEP, meanStepUsOf } from './mean-step.ts'
import { type StepLoad, StepTime, TICKS_PER_US } from './step-time.ts'

/**
 * How fast should this pool's engines be, before anything was seen? For simulated ones the step-time model knows; for
 * an engine behind a URL it is a guess that the first attempts correct. Policies may not import the engine, so the
 * model's answers are put into their words here.
 */
/** A busy engine for the prior: this many sequences, each halfway through a chat of ordinary length. */
const TYPICAL = { sequences: 128, promptTokens: 1_000, outputTokens: 200 }

export function speedOfEngine(options: EngineOptions, outputWeight: number): PoolSpeed {
  const { tokenBudget, blockCount, blockTokens, sequencesMax } = options.limits
  const chunkTokensMax = Math.min(tokenBudget, options.limits.longPrefillTokens ?? tokenBudget)
  const stepTime = new StepTime(options.coefficients, tokenBudget)
  const pace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
  // Asked several times for every request: one load for each question, filled in again and again.
  const decode = { ...IDLE_STEP, decodeCount: 1, decodeTokens: 1 }
  const chunk = { ...IDLE_STEP }
  const stepUs = (load: StepLoad): number => {
    stepTime.paceOf(load, pace)
    return pace.ticks / TICKS_PER_US
  }
  const decodeUs = (contextTokens: number): number => {
    decode.contextSum = contextTokens
    decode.contextMax = contextTokens
    return stepUs(decode)
  }
  const chunkUs = (tokens: number, contextTokens: number): number => {
    chunk.prefillTokens = tokens
    chunk.chunkPairs = (tokens * tokens) / 2
    chunk.contextPairs = tokens * contextTokens
    return stepUs(chunk)
  }
  const alone: EngineSpeed = {
    prefillUs(uncachedTokens, cachedTokens) {
      let us = 0
      for (let done = 0; done < Math.max(1, uncachedTokens); done += chunkTokensMax) {
        us += chunkUs(Math.min(chunkTokensMax, Math.max(1, uncachedTokens - done)), cachedTokens + done)
      }
      return Math.round(us)
    },
    tokenUs: (contextTokens) => Math.round(decodeUs(contextTokens)),
  }
  const sequences = Math.min(sequencesMax, TYPICAL.sequences)
  const { promptTokens, outputTokens } = TYPICAL
  const steps = { tokenBudget, meanTokenUs: meanStepUsOf(stepTime, tokenBudget) }
  const { promptTokenUs, outputTokenUs, contextTokenUs } = fullWorkPrices(options)
  const shareUs = (uncachedTokens: number, outputTokens: number): number => {
    const tokenUs = outputTokenUs + contextTokenUs * (uncachedTokens + outputTokens / 2)
    return Math.max(1, Math.round(uncachedTokens * promptTokenUs + outputTokens * tokenUs))
  }
  // Each step brings every sequence one token further, and takes along its part of the prompts of those to come.
  const contextTokens = sequences * (promptTokens + outputTokens / 2)
  const stepMeanUs = steps.meanTokenUs(sequences, contextTokens, (sequences * promptTokens) / outputTokens)
  const drainPerReplicaUs = ((promptTokens / outputTokens + outputWeight) * sequences) / stepMeanUs
  const kvTokensMax = blockCount * blockTokens
  return { alone: { ...alone, shareUs }, drainPerReplicaUs, kvTokensMax, steps, sequencesMax: takenInAtOnce(options) }
}

/** Where a batch runs to its end, the next one gathers meanwhile. */
function takenInAtOnce({ limits: { sequencesMax, staticBatching } }: EngineOptions): number {
  return staticBatching === undefined ? sequencesMax : 2 * sequencesMax
}

/** Texts of an ordinary length, for the prior. */
const TYPICAL_ITEM_TOKENS = 128

/** An engine that answers in one go: an item waits for its batch to fill, half of the timeout on the average. */
export function speedOfBatches({ cost, batchSizeMax, batchTimeoutUs }: BatchOptions): PoolSpeed {
  const full = Array.from({ length: batchSizeMax }, () => TYPICAL_ITEM_TOKENS)
  return {
    alone: {
      prefillUs: (tokens) => Math.round(batchTimeoutUs + cost([Math.max(1, tokens)])),
      tokenUs: () => 0,
    },
    drainPerReplicaUs: (batchSizeMax * TYPICAL_ITEM_TOKENS) / cost(full),
    kvTokensMax: Number.POSITIVE_INFINITY,
    steps: undefined,
    itemsMax: batchSizeMax,
  }
}
