import type { MeasuredRequest, MeasuredStep } from './measurements.ts'
import { reconstructSteps } from './reconstruct-steps.ts'

/** The steps of an engine at work, as the model has to explain them. */
export interface ServedSteps {
  readonly steps: readonly MeasuredStep[]
  /** Whether the requests told who was in each step. If not, prompts have no context and none is longest. */
  readonly isRebuilt: boolean
}

/** A longer pause between two steps is idling, not overhead: of 100 pauses at 256 sequences, one is over 0.8 ms. */
const GAP_US_MAX = 1_500

export function rebuildServedSteps(steps: readonly MeasuredStep[], requests: readonly MeasuredRequest[]): ServedSteps {
  const rebuilt = reconstructSteps(steps, requests)
  return { steps: withGaps(rebuilt ?? steps), isRebuilt: rebuilt !== undefined }
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
