import type { RooflineCoefficients } from '../gpu-profile.ts'
import { fitLeastSquares } from './least-squares.ts'
import { type BadCsv, type MeasuredStep, parseSteps } from './measurements.ts'
import {
  relativeErrors,
  type StepErrors,
  type StepErrorsByKind,
  summarizeByKind,
  summarizeErrors,
} from './step-errors.ts'

/**
 * Which coefficients explain measured step times?
 *
 * The formula of `step-time.ts` with nine free terms: weights, compute, knee, and for decoding and prefill a base, a
 * part per sequence or token, and attention. What one GPU cannot tell apart is not fitted: the output layer and the host
 * go into the bases, all-reduce is none, and attention inside a chunk costs what it costs to its context. The errors are
 * relative, so a 1 ms step counts as much as a 200 ms one; the parameters are fitted as logarithms, so none is negative.
 *
 * **Cross-validation**: five times a fifth of the rows is left out, the rest is fitted, and the error is taken on those
 * left out. A formula with too much freedom would do well on its own rows and badly there.
 */
export interface ProfileFit {
  readonly model: string
  readonly coefficients: RooflineCoefficients
  readonly errors: StepErrors
  readonly byKind: StepErrorsByKind
  readonly crossValidated: StepErrors
}

export interface ProfileFits {
  readonly kind: 'fits'
  readonly fits: readonly ProfileFit[]
}

const FOLDS = 5
/** Fewer rows than this for nine parameters is guessing. */
const ROWS_MIN = 20

export function fitProfile(stepsCsv: string): ProfileFits | BadCsv {
  const file = parseSteps(stepsCsv)
  if (file.kind === 'bad-csv') return file
  if (file.origin === 'served') {
    return { kind: 'bad-csv', line: 1, because: 'expected steps timed alone: a column decode_context, per sequence' }
  }
  const byModel = Map.groupBy(file.steps, (step) => step.model)
  for (const [model, steps] of byModel) {
    if (steps.length < ROWS_MIN) {
      return { kind: 'bad-csv', line: 1, because: `expected at least ${ROWS_MIN} rows for model "${model}"` }
    }
  }
  return { kind: 'fits', fits: [...byModel].map(([model, steps]) => fitModel(model, steps)) }
}

function fitModel(model: string, steps: readonly MeasuredStep[]): ProfileFit {
  const coefficients = fitCoefficients(steps)
  const errors = relativeErrors(coefficients, steps)
  return {
    model,
    coefficients,
    errors: summarizeErrors(errors),
    byKind: summarizeByKind(errors, steps),
    crossValidated: summarizeErrors(crossValidate(steps)),
  }
}

function crossValidate(steps: readonly MeasuredStep[]): number[] {
  const errors: number[] = []
  for (let fold = 0; fold < FOLDS; fold++) {
    const kept = steps.filter((_, i) => i % FOLDS !== fold)
    const left = steps.filter((_, i) => i % FOLDS === fold)
    errors.push(...relativeErrors(fitCoefficients(kept), left))
  }
  return errors
}

export function fitCoefficients(steps: readonly MeasuredStep[]): RooflineCoefficients {
  const start = guess(steps).map(Math.log)
  const fitted = fitLeastSquares(start, (logs) => relativeErrors(coefficientsOf(logs.map(Math.exp)), steps))
  return roundedCoefficients(coefficientsOf(fitted.map(Math.exp)))
}

function coefficientsOf(parameters: readonly number[]): RooflineCoefficients {
  const [weightsUs, computeUsPerToken, kneeSharpness, decodeBaseUs, kvReadUsPerToken] = parameters as number[]
  const [, , , , , contextUsPerToken, decodeUsPerSequence, prefillBaseUs, attentionUsPerPair] = parameters as number[]
  return {
    kind: 'roofline',
    weightsUs: weightsUs as number,
    computeUsPerToken: computeUsPerToken as number,
    kneeSharpness: kneeSharpness as number,
    lmHeadUs: 0,
    decodeBaseUs: decodeBaseUs as number,
    kvReadUsPerToken: kvReadUsPerToken as number,
    contextUsPerToken: contextUsPerToken as number,
    decodeUsPerSequence: decodeUsPerSequence as number,
    prefillBaseUs: prefillBaseUs as number,
    attentionUsPerPair: attentionUsPerPair as number,
    contextAttentionUsPerPair: attentionUsPerPair as number,
    allReduceBaseUs: 0,
    allReduceUsPerToken: 0,
    hostUs: 0,
    prefillFloorUs: 0,
    prefillFloorSharpness: 4,
    decodeFloorUs: 0,
  }
}

/** Somewhere in the right valley: weights from the shortest step, each other term from the step that has most of it. */
function guess(steps: readonly MeasuredStep[]): number[] {
  const weightsUs = 0.85 * Math.min(...steps.map((step) => step.measuredUs))
  const perUnit = (amountOf: (step: MeasuredStep) => number): number => {
    const most = steps.reduce((a, b) => (amountOf(b) > amountOf(a) ? b : a))
    const amount = amountOf(most)
    return amount > 0 ? Math.max(most.measuredUs - weightsUs, 0.1 * weightsUs) / amount : 1e-6 * weightsUs
  }
  const computeUsPerToken = perUnit(({ load }) => load.prefillTokens + load.decodeTokens)
  const kvReadUsPerToken = perUnit(({ load }) => load.contextSum)
  const contextUsPerToken = perUnit(({ load }) => (load.decodeCount === 1 ? load.contextMax : 0))
  const attentionUsPerPair = 0.5 * perUnit(({ load }) => load.contextPairs)
  const baseUs = 0.1 * weightsUs
  const decodeUsPerSequence = weightsUs / 2_000
  return [weightsUs, computeUsPerToken, 2.5, baseUs, kvReadUsPerToken].concat([
    contextUsPerToken,
    decodeUsPerSequence,
    baseUs,
    attentionUsPerPair,
  ])
}

/** Five digits say all that the measurements do, and read better. */
function roundedCoefficients(coefficients: RooflineCoefficients): RooflineCoefficients {
  const entries = Object.entries(coefficients).map(([name, value]) => [
    name,
    typeof value === 'number' ? Number(value.toPrecision(5)) : value,
  ])
  return Object.fromEntries(entries) as RooflineCoefficients
}
