import type { PoolSetup } from '../config/to-domain.ts'
import { gpuProfileNames } from '../engine/gpu-profiles.ts'
import { speedOfEngine } from '../engine/pool-speed.ts'
import { COST_DEFAULTS } from '../policy/planning/cost.ts'
import { priorOf, type TwinPrior } from '../policy/twin/twin-prior.ts'
import { Twins } from '../policy/twin/twins.ts'
import { type EngineSettings, engineOptionsOf } from './engine-options.ts'

/**
 * Engines behind a URL, and simulated ones that play such, are learned (`policy/twin`). The priors are the built-in
 * profiles, and the one that the configuration names.
 */

/** Slower than most: until the first dozens of answers are there, too little is sent rather than too much. */
const CAUTIOUS_PROFILE = 'a100-llama-8b'

export function twinsOf(config: EngineSettings, { backend, kind, limit }: PoolSetup): Twins | undefined {
  if (kind !== 'chat' || backend.kind === 'peer') return undefined
  if (backend.kind === 'simulated' && backend.hidden !== true) return undefined
  const priors = gpuProfileNames().flatMap((name) => priorFor(config, name) ?? [])
  const named = backend.kind === 'simulated' ? undefined : backend.profile
  const prior = priorFor(config, named ?? CAUTIOUS_PROFILE)
  if (prior === undefined) return undefined
  return new Twins({ priors: named === undefined ? priors : [prior], prior, sequencesMax: limit.concurrencyMax })
}

function priorFor(config: EngineSettings, name: string): TwinPrior | undefined {
  const { alone, steps } = speedOfEngine(engineOptionsOf(config, name), COST_DEFAULTS.outputWeight)
  return steps === undefined ? undefined : priorOf(name, { alone, steps })
}
