import { msToUs } from '../base/clock.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Config } from '../config/schema.ts'
import type { EngineOptions } from '../engine/engine.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import { limitsOf, servingCoefficients } from '../engine/gpu-profile.ts'
import { slowed } from '../engine/gpu-share.ts'
import type { Speculation } from '../engine/speculation.ts'
import { findSpeculation, speculationNames } from '../engine/speculation-profiles.ts'
import { loadProfile } from './fs-profiles.ts'

/** The settings that simulated engines are made from. None of them changes while the process runs. */
export type EngineSettings = Pick<Config, 'engine' | 'seed'>

/** A profile's name and changes to it become the options of an engine; an impossible change is an error of one line. */
export interface EngineChanges {
  readonly sequencesMax?: number | undefined
  readonly tokenBudget?: number | undefined
  /** Tokens that one prompt gets of a step at most; 0 or absent is off, as in vLLM. */
  readonly longPrefillTokens?: number | undefined
  readonly blockCount?: number | undefined
  readonly blockTokens?: number | undefined
  readonly waitingMax?: number | undefined
  /** Name of the drafter for speculation. */
  readonly speculation?: string | undefined
  readonly seed?: number | undefined
  /** How batches are formed; as configured if absent. */
  readonly batching?: Config['engine']['batching'] | undefined
  /** Every step takes this many times as long. */
  readonly slowdown?: number | undefined
}

export function engineOptionsOf(
  config: EngineSettings,
  profileName: string,
  changes: EngineChanges = {},
): EngineOptions {
  const profile = loadProfile(profileName)
  const { slowdown = 1, blockTokens, waitingMax, longPrefillTokens = 0, ...given } = changes
  const usual = limitsOf(profile, blockTokens)
  const limits: EngineLimits = {
    sequencesMax: given.sequencesMax ?? config.engine.batchSizeMax,
    tokenBudget: given.tokenBudget ?? usual.tokenBudget,
    blockCount: given.blockCount ?? usual.blockCount,
    blockTokens: usual.blockTokens,
    ...(waitingMax === undefined ? {} : { waitingMax }),
    ...(longPrefillTokens === 0 ? {} : { longPrefillTokens }),
    ...staticBatchingOf(config, given.batching ?? config.engine.batching),
  }
  const coefficients = slowed(servingCoefficients(profile), slowdown)
  const speculation = given.speculation === undefined ? undefined : findSpeculation(given.speculation, coefficients)
  if (speculation === undefined && given.speculation !== undefined) {
    throw new ConfigError([`no drafter is called "${given.speculation}". Known: ${speculationNames().join(', ')}.`])
  }
  const problem = problemOf(limits, profileName, speculation)
  if (problem !== undefined) throw new ConfigError([problem])
  return {
    coefficients,
    limits,
    ...(speculation === undefined ? {} : { speculation, seed: given.seed ?? config.seed }),
  }
}

/** BATCH_TIMEOUT_MS is the window of micro-batches. */
function staticBatchingOf(
  { engine }: EngineSettings,
  batching: Config['engine']['batching'],
): Pick<EngineLimits, 'staticBatching'> {
  if (batching === 'continuous') return {}
  return { staticBatching: { windowUs: batching === 'micro-batch' ? msToUs(engine.batchTimeoutMs) : 0 } }
}

function problemOf(limits: EngineLimits, profile: string, speculation: Speculation | undefined): string | undefined {
  const { sequencesMax, tokenBudget, blockCount } = limits
  if (blockCount < 1) return `the GPU of profile "${profile}" has no memory left for a single block of keys and values.`
  const tokensEach = 1 + (speculation?.draftTokens ?? 0)
  if (tokenBudget >= sequencesMax * tokensEach) return undefined
  const draft = tokensEach > 1 ? ` of ${tokensEach} tokens each` : ''
  return `${sequencesMax} sequences${draft} need a token budget of ${sequencesMax * tokensEach} a step, but it is ${tokenBudget}.`
}
