import { ConfigError } from '../config/config-error.ts'
import type { Config } from '../config/schema.ts'
import type { EngineOptions } from '../engine/engine.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import { limitsOf, type StepCoefficients } from '../engine/gpu-profile.ts'
import { findGpuProfile, gpuProfileNames } from '../engine/gpu-profiles.ts'

/** A profile's name and what is to be different from it become an engine; what cannot be is said in one line. */
export interface EngineChanges {
  readonly sequencesMax?: number | undefined
  readonly tokenBudget?: number | undefined
  readonly blockCount?: number | undefined
  readonly blockTokens?: number | undefined
  readonly waitingMax?: number | undefined
  /** Every step takes this many times as long. */
  readonly slowdown?: number | undefined
}

export function engineOptionsOf(config: Config, profileName: string, changes: EngineChanges = {}): EngineOptions {
  const profile = findGpuProfile(profileName)
  if (profile === undefined) {
    throw new ConfigError([`no GPU profile is called "${profileName}". Known: ${gpuProfileNames().join(', ')}.`])
  }
  const { slowdown, blockTokens, waitingMax, ...given } = changes
  const usual = limitsOf(profile, blockTokens)
  const limits: EngineLimits = {
    sequencesMax: given.sequencesMax ?? config.engine.batchSizeMax,
    tokenBudget: given.tokenBudget ?? usual.tokenBudget,
    blockCount: given.blockCount ?? usual.blockCount,
    blockTokens: usual.blockTokens,
    ...(waitingMax === undefined ? {} : { waitingMax }),
  }
  const problem = problemOf(limits, profileName)
  if (problem !== undefined) throw new ConfigError([problem])
  return { coefficients: slowed(profile.coefficients, slowdown ?? 1), limits }
}

function problemOf({ sequencesMax, tokenBudget, blockCount }: EngineLimits, profileName: string): string | undefined {
  if (blockCount < 1)
    return `the GPU of profile "${profileName}" has no memory left for a single block of keys and values.`
  if (tokenBudget >= sequencesMax) return undefined
  return `an engine that runs ${sequencesMax} sequences needs a token budget of at least as much, but it is ${tokenBudget}.`
}

/** By the naming rule of coefficients: what has `Us` in its name is a time, what ends in `PerSecond` is a rate. */
function slowed(coefficients: StepCoefficients, factor: number): StepCoefficients {
  if (factor === 1) return coefficients
  const entries = Object.entries(coefficients).map(([name, value]) => {
    if (typeof value !== 'number') return [name, value]
    if (name.endsWith('PerSecond')) return [name, value / factor]
    return [name, name.includes('Us') ? value * factor : value]
  })
  return Object.fromEntries(entries) as StepCoefficients
}
