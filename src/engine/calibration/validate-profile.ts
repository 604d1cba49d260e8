import type { EngineLimits } from '../engine-state.ts'
import { type GpuProfile, servingCoefficients } from '../gpu-profile.ts'
import { compareRequests, type RequestErrors, type RunErrors } from './compare-requests.ts'
import { type BadFile, type MeasuredRequest, parseRequests, parseSteps, type StepFile } from './measurements.ts'
import { rebuildServedSteps } from './served-steps.ts'
import {
  relativeErrors,
  type StepErrors,
  type StepErrorsByKind,
  summarizeByKind,
  summarizeErrors,
} from './step-errors.ts'

/**
 * How close does a profile come to what was measured?
 *
 * Steps that were timed alone are compared with the profile's kernels; steps and requests of an engine at work with what
 * the profile says such an engine does, the pause after a step counted to the step. Requests are replayed
 * (`compare-requests.ts`). Either file may be left out. Errors are fractions, simulated ÷ measured − 1.
 */
export interface Validation {
  readonly kind: 'validation'
  readonly profile: string
  readonly steps?: StepErrors & { readonly origin: StepFile['origin']; readonly byKind: StepErrorsByKind }
  readonly requests?: RequestErrors
  /** The runs of the requests one by one, where there are several. */
  readonly runs?: readonly RunErrors[]
}

export interface ValidationInput {
  readonly stepsCsv?: string
  readonly requestsCsv?: string
  readonly limits: EngineLimits
}

export function validateProfile(profile: GpuProfile, input: ValidationInput): Validation | BadFile {
  const stepFile = input.stepsCsv === undefined ? undefined : parseSteps(input.stepsCsv)
  if (stepFile?.kind === 'bad-csv') return { ...stepFile, file: 'steps' }
  const requestFile = input.requestsCsv === undefined ? undefined : parseRequests(input.requestsCsv)
  if (requestFile?.kind === 'bad-csv') return { ...requestFile, file: 'requests' }
  const oversized = requestFile?.requests.find((request) => !fits(request, input.limits))
  if (oversized !== undefined) {
    const because = `expected requests that fit into ${input.limits.blockCount} blocks of ${input.limits.blockTokens}`
    return { kind: 'bad-csv', file: 'requests', line: oversized.line, because }
  }
  return {
    kind: 'validation',
    profile: profile.name,
    ...(stepFile !== undefined && { steps: validateSteps(profile, stepFile, requestFile?.requests ?? []) }),
    ...(requestFile !== undefined && compareRequests(servingCoefficients(profile), input.limits, requestFile.requests)),
  }
}

function fits(request: MeasuredRequest, limits: EngineLimits): boolean {
  return request.promptTokens + request.outputTokens - 1 <= limits.blockCount * limits.blockTokens
}

function validateSteps(
  profile: GpuProfile,
  file: StepFile,
  requests: readonly MeasuredRequest[],
): NonNullable<Validation['steps']> {
  const isServed = file.origin === 'served'
  const coefficients = isServed ? servingCoefficients(profile) : profile.coefficients
  const ofModel = file.steps.filter((step) => step.model === profile.model)
  const chosen = ofModel.length > 0 ? ofModel : file.steps
  const steps = isServed ? rebuildServedSteps(chosen, requests).steps : chosen
  const errors = relativeErrors(coefficients, steps)
  return { origin: file.origin, ...summarizeErrors(errors), byKind: summarizeByKind(errors, steps) }
}
