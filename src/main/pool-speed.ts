import type { EngineOptions } from '../engine/engine.ts'
import { type StepLoad, StepTime, TICKS_PER_US } from '../engine/step-time.ts'
import type { EngineSpeed } from '../policy/planning/cost.ts'
import { makeConstantSpeed } from '../policy/planning/cost.ts'

/**
 * How fast should this pool's engines be, before anything was seen? For simulated ones the step-time model knows; for
 * an engine behind a URL it is a guess that the first attempts correct. Policies may not import the engine, so the
 * model's answers are put into their words here.
 */
export interface PoolSpeed {
  readonly alone: EngineSpeed
  /** Weighted tokens per microsecond that one busy replica should complete: the prior of the drain rate. */
  readonly drainPerReplicaUs: number
  readonly kvTokensMax: number
}

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
const TYPICAL = { sequences: 64, promptTokens: 1_000, outputTokens: 200 }

export function speedOfEngine(options: EngineOptions, outputWeight: number): PoolSpeed {
  const { tokenBudget, blockCount, blockTokens, sequencesMax } = options.limits
  const stepTime = new StepTime(options.coefficients, tokenBudget)
  const pace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
  const stepUs = (load: Partial<StepLoad>): number => {
    stepTime.paceOf({ ...IDLE, ...load }, pace)
    return pace.ticks / TICKS_PER_US
  }
  const decodeUs = (sequences: number, contextTokens: number): number =>
    stepUs({
      decodeCount: sequences,
      decodeTokens: sequences,
      contextSum: sequences * contextTokens,
      contextMax: contextTokens,
    })
  const chunkUs = (tokens: number, contextTokens: number): number =>
    stepUs({ prefillTokens: tokens, chunkPairs: (tokens * tokens) / 2, contextPairs: tokens * contextTokens })
  const alone: EngineSpeed = {
    prefillUs(uncachedTokens, cachedTokens) {
      let us = 0
      for (let done = 0; done < Math.max(1, uncachedTokens); done += tokenBudget) {
        us += chunkUs(Math.min(tokenBudget, Math.max(1, uncachedTokens - done)), cachedTokens + done)
      }
      return Math.round(us)
    },
    tokenUs: (contextTokens) => Math.round(decodeUs(1, contextTokens)),
  }
  const sequences = Math.min(sequencesMax, TYPICAL.sequences)
  const { promptTokens, outputTokens } = TYPICAL
  // One request's part of the engine's time: its prefill, and its share of the steps that it decodes in.
  const requestUs =
    alone.prefillUs(promptTokens, 0) + (outputTokens * decodeUs(sequences, promptTokens + outputTokens / 2)) / sequences
  const drainPerReplicaUs = (promptTokens + outputWeight * outputTokens) / requestUs
  return { alone, drainPerReplicaUs, kvTokensMax: blockCount * blockTokens }
}

/** About an 8B model on a good GPU; experience corrects it within some dozens of requests. */
export function speedUnknown(outputWeight: number): PoolSpeed {
  const alone = makeConstantSpeed({ prefillUsPerToken: 40, tokenUs: 12_000 })
  const { promptTokens, outputTokens, sequences } = TYPICAL
  const requestUs = alone.prefillUs(promptTokens, 0) + (outputTokens * 2 * alone.tokenUs(promptTokens)) / sequences
  return {
    alone,
    drainPerReplicaUs: (promptTokens + outputWeight * outputTokens) / requestUs,
    kvTokensMax: Number.POSITIVE_INFINITY,
  }
}
