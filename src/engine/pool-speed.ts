import type { EngineSpeed, PoolSpeed, StepModel } from '../domain/engine-speed.ts'
import type { BatchOptions } from './batch-engine.ts'
import type { EngineOptions } from './engine.ts'
import { type StepLoad, StepTime, TICKS_PER_US } from './step-time.ts'

/**
 * How fast should this pool's engines be, before anything was seen? For simulated ones the step-time model knows; for
 * an engine behind a URL it is a guess that the first attempts correct. Policies may not import the engine, so the
 * model's answers are put into their words here.
 */
const IDLE: StepLoad = {
  decodeCount: 0,
  decodeTokens: 0,
  contextSum: 0,
  contextMax: 0,
  prefillTokens: 0,
  chunkPairs: 0,
  contextPairs: 0,
}

/** A busy engine for the prior: so many sequences, each halfway through a chat of ordinary length. */
/** Sequences of an engine that is full: what a token costs there, where most others are computed beside it. */
const FULL_SEQUENCES = 192

const TYPICAL = { sequences: 128, promptTokens: 1_000, outputTokens: 200 }

export function speedOfEngine(options: EngineOptions, outputWeight: number): PoolSpeed {
  const { tokenBudget, blockCount, blockTokens, sequencesMax } = options.limits
  const stepTime = new StepTime(options.coefficients, tokenBudget)
  const pace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
  // Asked several times for every request: one load for each question, filled in again and again.
  const decode = { ...IDLE, decodeCount: 1, decodeTokens: 1 }
  const chunk = { ...IDLE }
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
      for (let done = 0; done < Math.max(1, uncachedTokens); done += tokenBudget) {
        us += chunkUs(Math.min(tokenBudget, Math.max(1, uncachedTokens - done)), cachedTokens + done)
      }
      return Math.round(us)
    },
    tokenUs: (contextTokens) => Math.round(decodeUs(contextTokens)),
  }
  const sequences = Math.min(sequencesMax, TYPICAL.sequences)
  const { promptTokens, outputTokens } = TYPICAL
  const steps = { tokenBudget, meanTokenUs: meanTokenUsOf(stepTime, tokenBudget) }
  const sequencesFull = Math.min(sequencesMax, FULL_SEQUENCES)
  const prefillTokenUs =
    (steps.meanTokenUs(sequencesFull, 0, tokenBudget) - steps.meanTokenUs(sequencesFull, 0, 0)) / tokenBudget
  // A step grows in a straight line with the contexts that it reads; this is asked for every plan.
  const tokenUs = steps.meanTokenUs(sequencesFull, 0, 0) / sequencesFull
  const contextTokenUs =
    steps.meanTokenUs(sequencesFull, sequencesFull * 1_000, 0) / sequencesFull / 1_000 - tokenUs / 1_000
  const shareUs = (uncachedTokens: number, outputTokens: number): number => {
    const stepUs = tokenUs + contextTokenUs * (uncachedTokens + outputTokens / 2)
    return Math.max(1, Math.round(uncachedTokens * prefillTokenUs + outputTokens * stepUs))
  }
  // Each step brings every sequence one token further, and takes along its part of the prompts of those to come.
  const contextTokens = sequences * (promptTokens + outputTokens / 2)
  const stepMeanUs = steps.meanTokenUs(sequences, contextTokens, (sequences * promptTokens) / outputTokens)
  const drainPerReplicaUs = ((promptTokens / outputTokens + outputWeight) * sequences) / stepMeanUs
  return { alone: { ...alone, shareUs }, drainPerReplicaUs, kvTokensMax: blockCount * blockTokens, steps }
}

/** Prompts come in chunks, not evenly: on the average of many steps, each brings its part of a chunk's extra time. */
const CHUNK_TOKENS = 1_024

function meanTokenUsOf(stepTime: StepTime, tokenBudget: number): StepModel['meanTokenUs'] {
  const load = { ...IDLE }
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
