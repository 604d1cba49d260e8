import { loadProfile, readText } from '../assembly/fs-profiles.ts'
import { ConfigError } from '../config/config-error.ts'
import { fitProfile, type ProfileFits } from '../engine/calibration/fit-profile.ts'
import { fitRecording } from '../engine/calibration/fit-serving.ts'
import { formatFit, formatServingFit, formatValidation } from '../engine/calibration/format-report.ts'
import { profileJsonOf, servedProfileJsonOf } from '../engine/calibration/profile-json.ts'
import { validateProfile } from '../engine/calibration/validate-profile.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import { limitsOf, type RooflineCoefficients } from '../engine/gpu-profile.ts'

/** The output of `spillway engine fit` and `spillway engine validate`, made from files of measurements. */
export interface Told {
  readonly text: string
  readonly json: object
  /** What the measurements cannot tell. */
  readonly warnings?: readonly string[]
}

export function fitFile(stepsPath: string, like: string): Told {
  loadProfile(like)
  const { fits } = fitsOf(stepsPath)
  return {
    text: fits.map(formatFit).join('\n\n'),
    json: {
      fits: fits.map((fit) => ({
        ...fit,
        profile: profileJsonOf(fit, { name: `fitted-${fit.model}`, like }),
      })),
    },
  }
}

function fitsOf(stepsPath: string): ProfileFits {
  const fitted = fitProfile(readText(stepsPath))
  if (fitted.kind === 'bad-csv') throw new ConfigError([`${stepsPath}:${fitted.line}: ${fitted.because}.`])
  return fitted
}

export interface FitServedOptions {
  readonly servedPath: string
  readonly requestsPath: string
  /** Steps timed alone, to fit the kernels to; without them the kernels are those of `like`. */
  readonly stepsPath: string | undefined
  readonly like: string
}

export function fitServedFiles({ servedPath, requestsPath, stepsPath, like }: FitServedOptions): Told {
  const kernels = kernelsOf(stepsPath, like)
  const fit = fitRecording(kernels, { steps: readText(servedPath), requests: readText(requestsPath) })
  if (fit.kind === 'bad-csv') {
    throw new ConfigError([`${fit.file === 'steps' ? servedPath : requestsPath}:${fit.line}: ${fit.because}.`])
  }
  const { kind: _, ...serving } = fit
  const name = `served-${loadProfile(like).model}`
  return {
    text: formatServingFit(name, fit),
    json: { serving, profile: servedProfileJsonOf(fit, kernels, { name, like }) },
    warnings: fit.warnings,
  }
}

function kernelsOf(stepsPath: string | undefined, like: string): RooflineCoefficients {
  const { coefficients, model } = loadProfile(like)
  if (stepsPath === undefined) {
    if (coefficients.kind === 'roofline') return coefficients
    throw new ConfigError([`--like ${like} has no kernels to add to. Name a measured profile, or give --steps.`])
  }
  const own = fitsOf(stepsPath).fits.find((fit) => fit.model === model)
  if (own !== undefined) return own.coefficients
  throw new ConfigError([`${stepsPath} has no steps of ${model}, the model of --like ${like}.`])
}

export interface ValidateOptions {
  readonly profile: string
  readonly stepsPath: string | undefined
  readonly requestsPath: string | undefined
  readonly limits: Partial<EngineLimits>
}

export function validateFiles({ profile: name, stepsPath, requestsPath, limits }: ValidateOptions): Told {
  const profile = loadProfile(name)
  const validation = validateProfile(profile, {
    ...(stepsPath === undefined ? {} : { stepsCsv: readText(stepsPath) }),
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
