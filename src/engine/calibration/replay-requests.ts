import { assert } from '../../base/assert.ts'
import { Engine } from '../engine.ts'
import type { EngineLimits } from '../engine-state.ts'
import type { StepCoefficients } from '../gpu-profile.ts'
import type { MeasuredRequest } from './measurements.ts'

/** The latencies that recorded arrivals get from the engine, run by run. */
export interface ReplayedRequest {
  readonly ttftUs: number
  readonly e2eUs: number
  /** Per output token after the first; undefined when there is none. */
  readonly tpotUs: number | undefined
}

export function replayRequests(
  coefficients: StepCoefficients,
  limits: EngineLimits,
  requests: readonly MeasuredRequest[],
): readonly ReplayedRequest[] {
  const runs = Map.groupBy(requests, (request) => request.workload)
  return [...runs.values()].flatMap((run) => replayRun(coefficients, limits, run))
}

function replayRun(
  coefficients: StepCoefficients,
  limits: EngineLimits,
  requests: readonly MeasuredRequest[],
): readonly ReplayedRequest[] {
  const engine = new Engine({ coefficients, limits })
  const replayed: ReplayedRequest[] = []
  const drain = (until: number): void => {
    for (let at = engine.nextEventAt(); at !== undefined && at < until; at = engine.nextEventAt()) {
      for (const event of engine.advance(at)) {
        if (event.kind !== 'finished') continue
        const { outputTokens } = event.usage
        const e2eUs = event.at - event.arrivedAt
        const ttftUs = event.firstTokenAt - event.arrivedAt
        replayed[Number(event.id)] = { ttftUs, e2eUs, tpotUs: tpotUs({ ttftUs, e2eUs, outputTokens }) }
      }
    }
  }
  for (const [i, request] of requests.entries()) {
    drain(request.arrivalUs)
    const { promptTokens, outputTokens } = request
    const submission = engine.submit(request.arrivalUs, { id: String(i), promptTokens, outputTokens })
    assert(submission.kind === 'taken', `request ${i} fits into the engine it is replayed on`)
  }
  drain(Number.POSITIVE_INFINITY)
  return replayed
}

export function tpotUs(request: { ttftUs: number; e2eUs: number; outputTokens: number }): number | undefined {
  const { ttftUs, e2eUs, outputTokens } = request
  return outputTokens > 1 ? (e2eUs - ttftUs) / (outputTokens - 1) : undefined
}
