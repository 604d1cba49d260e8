import { readFileSync } from 'node:fs'
import { ConfigError } from '../config/config-error.ts'
import { isProfileFile, profileProblem } from '../config/profile-problem.ts'
import { parseProfile } from '../engine/calibration/profile-json.ts'
import type { GpuProfile } from '../engine/gpu-profile.ts'
import { findGpuProfile } from '../engine/gpu-profiles.ts'

/** A GPU profile by its name in the catalogue, or from a file that `spillway engine fit` or `engine learned` wrote. */
export function loadProfile(nameOrPath: string): GpuProfile {
  if (isProfileFile(nameOrPath)) {
    const profile = parseProfile(readText(nameOrPath))
    if (!('kind' in profile)) return profile
    throw new ConfigError([`${nameOrPath}: ${profile.because}.`])
  }
  // A file's profile with a share of the GPU behind it: `learned.json+shared-2`.
  const profile = findGpuProfile(nameOrPath)
  if (profile !== undefined) return profile
  throw new ConfigError([`the GPU profile ${profileProblem(nameOrPath)}`])
}

/** Reads a file; a failure is an error of one line, without a stack. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'is not there' : code === 'EACCES' ? 'may not be read' : `cannot be read (${code})`
    throw new ConfigError([`${path} ${why}. Give the path of a file.`])
  }
}
