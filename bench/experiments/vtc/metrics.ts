import { OUTPUT_COST, type VtcResponse } from './a10g-engine.ts'

/**
 * How the VTC paper measures fairness (its artifact's plots): a request's service, prompt + 2 · output tokens, counts as
 * received evenly from its first token to its end.
 *
 * *Service difference*: at 19 ticks, in windows of 60 s, Σ over clients of min(most served − own, |asked − own|), in
 * service per second; then maximum, mean and variance over the ticks. *Accumulated gap*: most − least served since the
 * warm-up, the largest at any whole second until arrivals end.
 */
export interface VtcMeasures {
  readonly differenceMax: number
  readonly differenceMean: number
  readonly differenceVariance: number
  readonly gapMax: number
  /** Prompt and output tokens per second, until the last request is done. */
  readonly throughput: number
}

const WINDOW_S = 60
const WARM_UP_S = 30
const TICKS = 20
const US = 1_000_000

export function measureVtc(
  responses: readonly VtcResponse[],
  how: { readonly durationS: number; readonly weights?: Readonly<Record<string, number>> },
): VtcMeasures {
  const byTenant = Map.groupBy(responses, ({ tenant }) => tenant)
  const tickS = (how.durationS - WARM_UP_S) / TICKS
  const differences: number[] = []
  for (let tick = 1; tick < TICKS; tick++) {
    const fromS = tickS * tick - WINDOW_S / 2 + WARM_UP_S
    differences.push(differenceIn(byTenant, fromS, fromS + WINDOW_S))
  }
  const mean = differences.reduce((sum, one) => sum + one, 0) / differences.length
  const variance = differences.reduce((sum, one) => sum + (one - mean) ** 2, 0) / differences.length
  const tokens = responses.reduce((sum, { promptTokens, outputTokens }) => sum + promptTokens + outputTokens, 0)
  const endUs = responses.reduce((last, { endedAtUs }) => Math.max(last, endedAtUs), 0)
  return {
    differenceMax: Math.max(...differences),
    differenceMean: mean,
    differenceVariance: variance,
    gapMax: gapMax(byTenant, how),
    throughput: (tokens * US) / endUs,
  }
}

type ByTenant = ReadonlyMap<string, readonly VtcResponse[]>

function differenceIn(byTenant: ByTenant, fromS: number, toS: number): number {
  const clients = [...byTenant.values()].map((responses) => ({
    served: responses.reduce((sum, response) => sum + serviceIn(response, fromS, toS), 0) / WINDOW_S,
    asked:
      responses
        .filter(({ arrivedAtUs }) => fromS * US <= arrivedAtUs && arrivedAtUs <= toS * US)
        .reduce((sum, response) => sum + serviceOf(response), 0) / WINDOW_S,
  }))
  const most = Math.max(...clients.map(({ served }) => served))
  return clients.reduce((sum, { served, asked }) => sum + Math.min(most - served, Math.abs(asked - served)), 0)
}

function gapMax(
  byTenant: ByTenant,
  how: { readonly durationS: number; readonly weights?: Readonly<Record<string, number>> },
): number {
  let gap = 0
  for (let toS = WARM_UP_S + 1; toS <= how.durationS; toS++) {
    const served = [...byTenant].map(
      ([tenant, responses]) =>
        responses.reduce((sum, response) => sum + serviceIn(response, WARM_UP_S, toS), 0) /
        (how.weights?.[tenant] ?? 1),
    )
    gap = Math.max(gap, Math.max(...served) - Math.min(...served))
  }
  return gap
}

const serviceOf = ({ promptTokens, outputTokens }: VtcResponse): number => promptTokens + OUTPUT_COST * outputTokens

function serviceIn(response: VtcResponse, fromS: number, toS: number): number {
  const { firstTokenAtUs, endedAtUs } = response
  // As in the artifact: an answer of one token has no stretch over which to spread, and is left out.
  if (endedAtUs - firstTokenAtUs < 10) return 0
  const overlapUs = Math.min(toS * US, endedAtUs) - Math.max(fromS * US, firstTokenAtUs)
  return (serviceOf(response) * Math.max(0, overlapUs)) / (endedAtUs - firstTokenAtUs)
}
