import { msToUs } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { encoderCost } from '../engine/batch-cost.ts'
import type { BatchOptions } from '../engine/batch-engine.ts'
import { type EngineChanges, engineOptionsOf } from './engine-options.ts'

/** Of models that answer in one go: what MAX_BATCH_SIZE, BATCH_TIMEOUT_MS and a GPU profile make of their engine. */
export function batchOptionsOf(config: Config, profileName: string, changes: EngineChanges = {}): BatchOptions {
  const { coefficients, limits } = engineOptionsOf(config, profileName, changes)
  return {
    batchSizeMax: limits.sequencesMax,
    batchTimeoutUs: msToUs(config.engine.batchTimeoutMs),
    // As much as the same GPU computes of prompts in a few steps: longer batches make everybody wait.
    batchTokensMax: limits.tokenBudget * BATCH_STEPS_MAX,
    cost: encoderCost(coefficients),
    ...(limits.waitingMax !== undefined && { waitingMax: limits.waitingMax }),
  }
}

const BATCH_STEPS_MAX = 8
