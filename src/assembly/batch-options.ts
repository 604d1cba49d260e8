import { msToUs } from '../base/clock.ts'
import { encoderCost } from '../engine/batch-cost.ts'
import type { BatchOptions } from '../engine/batch-engine.ts'
import { type EngineChanges, type EngineSettings, engineOptionsOf } from './engine-options.ts'

/**
 * Options of a batching engine, for models that answer without streaming, from MAX_BATCH_SIZE, BATCH_TIMEOUT_MS and a
 * GPU profile.
 */
export function batchOptionsOf(config: EngineSettings, profileName: string, changes: EngineChanges = {}): BatchOptions {
  const { coefficients, limits } = engineOptionsOf(config, profileName, changes)
  return {
    batchSizeMax: limits.sequencesMax,
    batchTimeoutUs: msToUs(config.engine.batchTimeoutMs),
    // As many tokens as the same GPU computes of prompts in a few steps: longer batches delay every request in them.
    batchTokensMax: limits.tokenBudget * BATCH_STEPS_MAX,
    cost: encoderCost(coefficients),
    ...(limits.waitingMax !== undefined && { waitingMax: limits.waitingMax }),
  }
}

const BATCH_STEPS_MAX = 8
