import { US_PER_S } from '../../base/clock.ts'
import type { TraceRequest } from '../traces/trace.ts'

/**
 * The scenario of a plan: one model on one pool of equal replicas, the trace's tenants with equal weights, and the
 * target as everybody's promise. Admission refuses as in production; nothing is degraded, because a plan is for answers
 * in full.
 */
export interface PlanTarget {
  readonly ttftMs: number
  readonly itlMs: number
  /** Share of the requests that may be refused. */
  readonly refusedRatioMax: number
}

export interface PlanWorkload {
  readonly name: string
  readonly tenants: readonly string[]
  readonly durationS: number
  /** Longest answer: no request is cut at a default. */
  readonly outputTokensMax: number
}

export interface PlanFleet {
  /** A name of the catalogue, or a file. */
  readonly profile: string
  readonly replicas: number
  /** Multiplies the requests of the trace. */
  readonly load: number
}

/** Width of the windows in which the worst one is looked for. */
export const PLAN_WINDOW_S = 60

const MODEL = 'model'
/** Longer than any model's: a trace's prompts are what they are. */
const CONTEXT_TOKENS_MAX = 10_000_000
const OUTPUT_TOKENS_DEFAULT = 1_024
/** Long: the target says nothing about whole answers. */
const TOTAL_MS = 3_600_000

export function workloadOf(name: string, requests: readonly TraceRequest[]): PlanWorkload {
  const tenants = new Set<string>()
  let outputTokensMax = OUTPUT_TOKENS_DEFAULT
  for (const { tenant, outputTokens } of requests) {
    if (tenant !== undefined) tenants.add(tenant)
    outputTokensMax = Math.max(outputTokensMax, outputTokens)
  }
  const durationS = Math.floor((requests.at(-1)?.atUs ?? 0) / US_PER_S) + 1
  return { name, tenants: tenants.size === 0 ? ['everybody'] : [...tenants], durationS, outputTokensMax }
}

export function planTree(workload: PlanWorkload, target: PlanTarget, fleet: PlanFleet): Record<string, unknown> {
  const { name, tenants, durationS, outputTokensMax } = workload
  const slo = { name: 'plan', ttftMs: target.ttftMs, interTokenMs: target.itlMs, totalMs: TOTAL_MS }
  const model = { name: MODEL, contextTokensMax: CONTEXT_TOKENS_MAX, outputTokensDefault: outputTokensMax }
  return {
    name,
    about: `${fleet.replicas} replicas of ${fleet.profile}`,
    durationS,
    windowS: PLAN_WINDOW_S,
    load: fleet.load,
    platform: {
      models: [model],
      pools: [{ model: MODEL, replicas: fleet.replicas, backend: { kind: 'simulated', profile: fleet.profile } }],
      slos: [slo],
      tenants: tenants.map((id) => ({ id, slo: slo.name, bands: ['interactive', 'standard', 'offline'] })),
      ladder: { enabled: false },
    },
    workload: [
      {
        tenant: tenants[0],
        model: MODEL,
        // The trace takes the place of these.
        arrivals: { kind: 'poisson', ratePerS: 1 },
        prompt: { kind: 'fixed', tokens: 1 },
        output: { kind: 'fixed', tokens: 1 },
      },
    ],
  }
}
