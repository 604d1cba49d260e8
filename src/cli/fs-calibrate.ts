import { loadProfile, readText } from '../assembly/fs-profiles.ts'
import { ConfigError } from '../config/config-error.ts'
import { fitProfile } from '../engine/calibration/fit-profile.ts'
import { formatFit, formatValidation } from '../engine/calibration/format-report.ts'
import { profileJsonOf } from '../engine/calibration/profile-json.ts'
import { validateProfile } from '../engine/calibration/validate-profile.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import { limitsOf } from '../engine/gpu-profile.ts'

/** The output of `spillway engine fit` and `spillway engine validate`, made from files of measurements. */
export interface Told {
  readonly text: string
  readonly json: object
}

export function fitFile(stepsPath: string, like: string): Told {
  loadProfile(like)
  const fitted = fitProfile(readText(stepsPath))
  if (fitted.kind === 'bad-csv') throw new ConfigError([`${stepsPath}:${fitted.line}: ${fitted.because}.`])
  return {
    text: fitted.fits.map(formatFit).join('\n\n'),
    json: {
      fits: fitted.fits.map((fit) => ({
        ...fit,
        profile: profileJsonOf(fit, { name: `fitted-${fit.model}`, like }),
      })),
    },
  }
}

export interface ValidateOptions {
  readonly profile: string
  readonly stepsPath: string
  readonly requestsPath: string | undefined
  readonly limits: Partial<EngineLimits>
}

export function validateFiles({ profile: name, stepsPath, requestsPath, limits }: ValidateOptions): Told {
  const profile = loadProfile(name)
  const validation = validateProfile(profile, {
    stepsCsv: readText(stepsPath),
    ...(requestsPath === undefined ? {} : { requestsCsv: readText(requestsPath) }),
    limits: { ...limitsOf(profile, limits.blockTokens), ...limits },
  })
  if (validation.kind === 'bad-csv') {
    const path = validation.file === 'steps' ? stepsPath : requestsPath
    throw new ConfigError([`${path}:${validation.line}: ${validation.because}.`])
  }
  const { kind: _, ...json } = validation
  return { text: formatValidation(validation), json }
}
