import type { EngineLimits } from '../engine-state.ts'
import { type GpuProfile, servingCoefficients } from '../gpu-profile.ts'
import { type BadCsv, type MeasuredRequest, parseRequests, parseSteps, type StepFile } from './measurements.ts'
import { reconstructSteps } from './reconstruct-steps.ts'
import { type ReplayedRequest, replayRequests, tpotUs } from './replay-requests.ts'
import { mean, quantile } from './statistics.ts'
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
 * the profile says such an engine does. Requests are replayed: their arrivals go through the simulated engine, and the
 * distributions of its latencies are held against the measured ones. Errors are fractions, simulated ÷ measured − 1.
 */
export interface Validation {
  readonly kind: 'validation'
  readonly profile: string
  readonly steps: StepErrors & { readonly origin: StepFile['origin']; readonly byKind: StepErrorsByKind }
  readonly requests?: RequestErrors
}

export interface RequestErrors {
  readonly count: number
  readonly ttft: LatencyErrors
  readonly e2e: LatencyErrors
  readonly tpot: LatencyErrors
}

export interface LatencyErrors {
  readonly meanError: number
  readonly p50Error: number
  readonly p95Error: number
  readonly p99Error: number
  readonly measuredMs: LatencySummary
  readonly simulatedMs: LatencySummary
}

export interface LatencySummary {
  readonly mean: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

export interface ValidationInput {
  readonly stepsCsv: string
  readonly requestsCsv?: string
  readonly limits: EngineLimits
}

/** Which of the files a complaint is about. */
export type BadFile = BadCsv & { readonly file: 'steps' | 'requests' }

export function validateProfile(profile: GpuProfile, input: ValidationInput): Validation | BadFile {
  const stepFile = parseSteps(input.stepsCsv)
  if (stepFile.kind === 'bad-csv') return { ...stepFile, file: 'steps' }
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
    steps: validateSteps(profile, stepFile, requestFile?.requests),
    ...(requestFile !== undefined && { requests: validateRequests(profile, requestFile.requests, input.limits) }),
  }
}

function fits(request: MeasuredRequest, limits: EngineLimits): boolean {
  return request.promptTokens + request.outputTokens - 1 <= limits.blockCount * limits.blockTokens
}

function validateSteps(
  profile: GpuProfile,
  file: StepFile,
  requests: readonly MeasuredRequest[] | undefined,
): Validation['steps'] {
  const isServed = file.origin === 'served'
  const coefficients = isServed ? servingCoefficients(profile) : profile.coefficients
  const ofModel = file.steps.filter((step) => step.model === profile.model)
  const chosen = ofModel.length > 0 ? ofModel : file.steps
  const steps = (isServed && requests !== undefined && reconstructSteps(chosen, requests)) || chosen
  const errors = relativeErrors(coefficients, steps)
  return { origin: file.origin, ...summarizeErrors(errors), byKind: summarizeByKind(errors, steps) }
}

function validateRequests(
  profile: GpuProfile,
  measured: readonly MeasuredRequest[],
  limits: EngineLimits,
): RequestErrors {
  const simulated = replayRequests(servingCoefficients(profile), limits, measured)
  const latency = (of: (request: ReplayedRequest) => number | undefined): LatencyErrors =>
    compare(
      measured.map((request) => of({ ...request, tpotUs: tpotUs(request) })).filter(isKnown),
      simulated.map(of).filter(isKnown),
    )
  return {
    count: measured.length,
    ttft: latency((request) => request.ttftUs),
    e2e: latency((request) => request.e2eUs),
    tpot: latency((request) => request.tpotUs),
  }
}

function isKnown(value: number | undefined): value is number {
  return value !== undefined
}

function compare(measuredUs: readonly number[], simulatedUs: readonly number[]): LatencyErrors {
  const measuredMs = summarize(measuredUs)
  const simulatedMs = summarize(simulatedUs)
  return {
    meanError: simulatedMs.mean / measuredMs.mean - 1,
    p50Error: simulatedMs.p50 / measuredMs.p50 - 1,
    p95Error: simulatedMs.p95 / measuredMs.p95 - 1,
    p99Error: simulatedMs.p99 / measuredMs.p99 - 1,
    measuredMs,
    simulatedMs,
  }
}

function summarize(us: readonly number[]): LatencySummary {
  return {
    mean: mean(us) / 1e3,
    p50: quantile(us, 0.5) / 1e3,
    p95: quantile(us, 0.95) / 1e3,
    p99: quantile(us, 0.99) / 1e3,
  }
}
