import { fitSpeed, speedErrors } from '../engine/calibration/fit-speed.ts'
import type { ProfileJson } from '../engine/calibration/profile-json.ts'
import { findGpuProfile } from '../engine/gpu-profiles.ts'
import { speedOfPrior } from '../policy/twin/speed-of-prior.ts'

/**
 * What was learned of an engine → a profile as a file, which `serve`, `simulate` and `engine` read. The file keeps the
 * price and the number of GPUs of the profile that the engine was found to be like.
 */
export interface LearnedEngine {
  /** Of the replica. */
  readonly id: string
  readonly prior: string
  readonly rows: number
  readonly decode: readonly number[]
  readonly read: readonly number[]
  readonly tokenBudget: number
  readonly kvTokensMax: number | undefined
}

export interface LearnedProfile {
  readonly profile: ProfileJson
  /** Mean and largest relative difference between what was learned and what the profile says, at ordinary loads. */
  readonly meanError: number
  readonly maxError: number
}

/** Where the engine is like none of the catalogue. */
const LIKE = 'h100-llama-8b'

export function learnedProfileOf(learned: LearnedEngine): LearnedProfile {
  const speed = speedOfPrior(learned)
  const coefficients = fitSpeed(speed)
  const errors = speedErrors(coefficients, speed).map(Math.abs)
  const { id, prior, rows, kvTokensMax } = learned
  // A prior may be named after a profile with more words behind: "h100-llama-8b, as another replica".
  const [like = LIKE] = prior.split(',')
  return {
    profile: {
      name: `learned-${id}`,
      like: findGpuProfile(like) === undefined ? LIKE : like,
      source: `learned from ${rows} stretches of answers of ${id}`,
      coefficients,
      ...(kvTokensMax !== undefined && { kvTokensMax }),
    },
    meanError: errors.reduce((sum, error) => sum + error, 0) / errors.length,
    maxError: Math.max(...errors),
  }
}
