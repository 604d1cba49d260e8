import { ConfigError } from '../config/config-error.ts'
import type { Config } from '../config/schema.ts'
import type { EngineOptions } from '../engine/engine.ts'
import { limitsOf, servingCoefficients } from '../engine/gpu-profile.ts'
import { findGpuProfile, gpuProfileNames } from '../engine/gpu-profiles.ts'

/** The engine that a profile's name and the settings describe. */
export function engineOptionsOf(config: Config, profileName: string): EngineOptions {
  const profile = findGpuProfile(profileName)
  if (profile === undefined) {
    throw new ConfigError([`no GPU profile is called "${profileName}". Known: ${gpuProfileNames().join(', ')}.`])
  }
  return {
    coefficients: servingCoefficients(profile),
    limits: { ...limitsOf(profile), sequencesMax: config.engine.batchSizeMax },
  }
}
