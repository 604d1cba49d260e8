import type { RooflineCoefficients } from '../gpu-profile.ts'
import { stepUs } from '../step-time.ts'
import { fitLeastSquares } from './least-squares.ts'
import type { MeasuredRequest, MeasuredStep } from './measurements.ts'
import { reconstructSteps } from './reconstruct-steps.ts'
import { mean, quantile } from './statistics.ts'

/**
 * What does a whole engine add to its kernels?
 *
 * Given the kernels' coefficients and the recording of an engine at work, four terms are fitted: what the host adds to
 * every step (its own gaps between steps included), the floor under steps with a prefill that are launched kernel by
 * kernel and its sharpness, and attention from a chunk to its context, which goes through the block table there. Two
 * terms go away: launching a prefill is in the floor, and the engine's decode attention splits long contexts (at one
 * sequence its steps take the same at 3,500 tokens of context as at 1,100).
 *
 * Everything else stays the kernels': a workload that looks different must not need another fit.
 */
export type ServingTerms = Pick<
  RooflineCoefficients,
  | 'hostUs'
  | 'prefillBaseUs'
  | 'prefillFloorUs'
  | 'prefillFloorSharpness'
  | 'contextAttentionUsPerPair'
  | 'contextUsPerToken'
>

/** A longer pause between two steps is idling, not overhead. */
const GAP_US_MAX = 1_000

export function fitServing(
  kernels: RooflineCoefficients,
  steps: readonly MeasuredStep[],
  requests: readonly MeasuredRequest[],
): ServingTerms {
  const rebuilt = withGaps(reconstructSteps(steps, requests) ?? steps)
  const decodes = rebuilt.filter((step) => step.load.prefillTokens === 0)
  const prefills = rebuilt.filter((step) => step.load.prefillTokens > 0)
  const decodeUs = mean(decodes.map((step) => step.measuredUs))
  const prefillUs = mean(prefills.map((step) => step.measuredUs))
  // Absolute errors, so that the means come out right: latencies are sums of step times.
  const residuals = (terms: ServingTerms): number[] => {
    const coefficients = { ...kernels, ...terms }
    const errorUs = (step: MeasuredStep): number => stepUs(coefficients, step.load) - step.measuredUs
    return [...decodes.map((step) => errorUs(step) / decodeUs), ...prefills.map((step) => errorUs(step) / prefillUs)]
  }
  const shortest = quantile(
    prefills.map((step) => step.measuredUs),
    0.1,
  )
  const start = [0.1 * decodeUs, shortest, 4, 2 * kernels.contextAttentionUsPerPair]
  const fitted = fitLeastSquares(start.map(Math.log), (logs) => residuals(termsOf(logs.map(Math.exp))))
  return termsOf(fitted.map((log) => Number(Math.exp(log).toPrecision(4))))
}

function termsOf(parameters: readonly number[]): ServingTerms {
  const [hostUs, prefillFloorUs, prefillFloorSharpness, contextAttentionUsPerPair] = parameters
  return {
    hostUs: hostUs as number,
    prefillBaseUs: 0,
    prefillFloorUs: prefillFloorUs as number,
    prefillFloorSharpness: prefillFloorSharpness as number,
    contextAttentionUsPerPair: contextAttentionUsPerPair as number,
    contextUsPerToken: 0,
  }
}

/** From the start of a step to the start of the next, where they follow each other. */
function withGaps(steps: readonly MeasuredStep[]): readonly MeasuredStep[] {
  return steps.map((step, i) => {
    const next = steps[i + 1]
    if (next === undefined || next.workload !== step.workload) return step
    const gapUs = next.startUs - step.startUs - step.measuredUs
    return gapUs >= 0 && gapUs < GAP_US_MAX ? { ...step, measuredUs: step.measuredUs + gapUs } : step
  })
}
