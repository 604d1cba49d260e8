import type { StepCoefficients } from '../gpu-profile.ts'
import { stepUs } from '../step-time.ts'
import type { MeasuredStep, StepKind } from './measurements.ts'
import { quantile } from './statistics.ts'

/** How far predicted step times are from measured ones, as fractions of the measured. */
export interface StepErrors {
  readonly count: number
  /** Of the absolute errors. */
  readonly medianError: number
  readonly p90Error: number
  readonly maxError: number
  /** Signed: the median of the errors themselves. Above zero the model is too slow. */
  readonly bias: number
}

export type StepErrorsByKind = Partial<Record<StepKind, StepErrors>>

export function relativeErrors(coefficients: StepCoefficients, steps: readonly MeasuredStep[]): number[] {
  return steps.map((step) => stepUs(coefficients, step.load) / step.measuredUs - 1)
}

export function summarizeErrors(errors: readonly number[]): StepErrors {
  const absolute = errors.map(Math.abs)
  return {
    count: errors.length,
    medianError: quantile(absolute, 0.5),
    p90Error: quantile(absolute, 0.9),
    maxError: quantile(absolute, 1),
    bias: quantile(errors, 0.5),
  }
}

export function summarizeByKind(errors: readonly number[], steps: readonly MeasuredStep[]): StepErrorsByKind {
  const byKind: StepErrorsByKind = {}
  for (const kind of ['prefill', 'decode', 'mixed'] as const) {
    const own = errors.filter((_, i) => steps[i]?.kind === kind)
    if (own.length > 0) byKind[kind] = summarizeErrors(own)
  }
  return byKind
}
