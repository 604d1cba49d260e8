import type { RooflineCoefficients } from '../gpu-profile.ts'
import { stepUs } from '../step-time.ts'
import { fitLeastSquares } from './least-squares.ts'
import { type BadFile, type MeasuredRequest, type MeasuredStep, parseRequests, parseSteps } from './measurements.ts'
import { oneSidedWarnings } from './one-sided.ts'
import { rebuildServedSteps } from './served-steps.ts'
import { mean, quantile } from './statistics.ts'
import {
  relativeErrors,
  type StepErrors,
  type StepErrorsByKind,
  summarizeByKind,
  summarizeErrors,
} from './step-errors.ts'

/**
 * What does a whole engine do differently from its kernels?
 *
 * Given the kernels' coefficients and the recording of an engine at work, seven terms are fitted:
 *   - what the host adds to every step, its pauses between steps included;
 *   - what a decoding sequence and a token of its context add: tables and slots of every sequence are copied, batches are
 *     padded to the next captured graph, keys and values are read through the block table;
 *   - the floor under steps with a prefill that are launched kernel by kernel, its sharpness, and what such a step adds
 *     where the GPU and not the floor decides;
 *   - attention from a chunk to its context, which goes through the block table too.
 * One term goes away: the engine's decode attention splits long contexts (at one sequence its steps take the same at 3,500
 * tokens of context as at 1,100). Weights, arithmetic and the knee stay the kernels'.
 *
 * **The kinds count alike.** Decode steps and steps with a prefill have the same weight together, however many there are:
 * below the knee nine steps of ten decode, above it every second. Within a kind errors are absolute, so that sums come
 * out right: latencies are sums of step times.
 *
 * **A light pull** keeps a term that the recording does not tell where the kernels have it: a term that changes by the
 * factor e has to explain as much as an error of 1 % in every step. Where that decides, `one-sided.ts` warns.
 */
export type ServingTerms = Pick<RooflineCoefficients, FreeTerm | 'contextUsPerToken'>

type FreeTerm = (typeof FREE_TERMS)[number]

const FREE_TERMS = [
  'hostUs',
  'decodeUsPerSequence',
  'kvReadUsPerToken',
  'prefillBaseUs',
  'prefillFloorUs',
  'prefillFloorSharpness',
  'contextAttentionUsPerPair',
] as const

const PULL = 0.003

/** Fewer steps than this for seven terms is guessing. */
const STEPS_MIN = 20

export interface ServingFit {
  readonly kind: 'serving-fit'
  readonly terms: ServingTerms
  /** What the kernels alone would say of the recorded steps. */
  readonly kernelErrors: StepErrors
  readonly errors: StepErrors
  readonly byKind: StepErrorsByKind
  /** What the recording cannot tell; empty for a good one. */
  readonly warnings: readonly string[]
}

/** The same from files; `BadFile` says what is wrong with which. */
export function fitRecording(
  kernels: RooflineCoefficients,
  csv: { readonly steps: string; readonly requests: string },
): ServingFit | BadFile {
  const stepFile = parseSteps(csv.steps)
  if (stepFile.kind === 'bad-csv') return { ...stepFile, file: 'steps' }
  const complain = (because: string): BadFile => ({ kind: 'bad-csv', file: 'steps', line: 1, because })
  if (stepFile.origin === 'kernels') {
    return complain('expected steps of an engine at work: the columns start_s and decode_context_sum')
  }
  if (stepFile.steps.length < STEPS_MIN) return complain(`expected at least ${STEPS_MIN} steps`)
  const requestFile = parseRequests(csv.requests)
  if (requestFile.kind === 'bad-csv') return { ...requestFile, file: 'requests' }
  return fitServing(kernels, stepFile.steps, requestFile.requests)
}

export function fitServing(
  kernels: RooflineCoefficients,
  steps: readonly MeasuredStep[],
  requests: readonly MeasuredRequest[],
): ServingFit {
  const served = rebuildServedSteps(steps, requests)
  const terms = fitTerms(kernels, served.steps)
  const errors = relativeErrors({ ...kernels, ...terms }, served.steps)
  return {
    kind: 'serving-fit',
    terms,
    kernelErrors: summarizeErrors(relativeErrors(kernels, served.steps)),
    errors: summarizeErrors(errors),
    byKind: summarizeByKind(errors, served.steps),
    warnings: oneSidedWarnings(served),
  }
}

function fitTerms(kernels: RooflineCoefficients, steps: readonly MeasuredStep[]): ServingTerms {
  const start = startTerms(kernels, steps).map(Math.log)
  const weightOf = kindWeights(steps)
  const fitted = fitLeastSquares(start, (logs) => {
    const coefficients = { ...kernels, ...termsOf(logs.map(Math.exp)) }
    const residuals = steps.map((step) => weightOf(step) * (stepUs(coefficients, step.load) - step.measuredUs))
    return residuals.concat(logs.map((log, i) => PULL * (log - (start[i] as number))))
  })
  return termsOf(fitted.map((log) => Number(Math.exp(log).toPrecision(4))))
}

/** One over the mean time of a step of this kind, and over the root of how many there are. */
function kindWeights(steps: readonly MeasuredStep[]): (step: MeasuredStep) => number {
  const weights = [isDecode, isPrefill].map((isKind) => {
    const us = steps.filter(isKind).map((step) => step.measuredUs)
    return us.length === 0 ? 0 : 1 / (mean(us) * Math.sqrt(us.length))
  })
  return (step) => weights[isDecode(step) ? 0 : 1] as number
}

function isDecode(step: MeasuredStep): boolean {
  return step.load.prefillTokens === 0
}

function isPrefill(step: MeasuredStep): boolean {
  return step.load.prefillTokens > 0
}

/** The kernels' own terms where they have them; else somewhere in the right valley. */
function startTerms(kernels: RooflineCoefficients, steps: readonly MeasuredStep[]): number[] {
  const usOf = (isKind: (step: MeasuredStep) => boolean): number[] => {
    const own = steps.filter(isKind)
    return (own.length === 0 ? steps : own).map((step) => step.measuredUs)
  }
  const decodeUs = mean(usOf(isDecode))
  const start: Readonly<Record<FreeTerm, number>> = {
    hostUs: 0.1 * decodeUs,
    decodeUsPerSequence: kernels.decodeUsPerSequence || decodeUs / 2_000,
    kvReadUsPerToken: kernels.kvReadUsPerToken || decodeUs / 200_000,
    prefillBaseUs: kernels.prefillBaseUs || 0.1 * decodeUs,
    prefillFloorUs: quantile(usOf(isPrefill), 0.1),
    prefillFloorSharpness: 4,
    contextAttentionUsPerPair: 2 * (kernels.contextAttentionUsPerPair || 1e-6),
  }
  return FREE_TERMS.map((term) => start[term])
}

function termsOf(parameters: readonly number[]): ServingTerms {
  const free = Object.fromEntries(FREE_TERMS.map((term, i) => [term, parameters[i]])) as Record<FreeTerm, number>
  return { ...free, contextUsPerToken: 0 }
}
