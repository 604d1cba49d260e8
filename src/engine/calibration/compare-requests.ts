import type { EngineLimits } from '../engine-state.ts'
import type { StepCoefficients } from '../gpu-profile.ts'
import type { MeasuredRequest } from './measurements.ts'
import { type ReplayedRequest, replayRequests, tpotUs } from './replay-requests.ts'
import { mean, quantile } from './statistics.ts'

/**
 * How close do replayed requests come to the measured ones?
 *
 * The arrivals go through the simulated engine, each run through its own, and the distributions of its latencies are held
 * against the measured ones. Throughput is what was served from the first arrival to the last answer: above the knee it
 * is the engine's capacity, below it the load. Errors are fractions, simulated ÷ measured − 1.
 */
export interface RequestErrors {
  readonly count: number
  readonly ttft: LatencyErrors
  readonly e2e: LatencyErrors
  readonly tpot: LatencyErrors
  readonly throughput: ThroughputErrors
}

/** The errors of one run of a file that has several. */
export interface RunErrors extends RequestErrors {
  readonly workload: string
}

export interface LatencyErrors {
  readonly meanError: number
  readonly p50Error: number
  readonly p90Error: number
  readonly p95Error: number
  readonly p99Error: number
  readonly measuredMs: LatencySummary
  readonly simulatedMs: LatencySummary
}

export interface LatencySummary {
  readonly mean: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
}

export interface ThroughputErrors {
  readonly requestsError: number
  readonly tokensError: number
  readonly measured: Throughput
  readonly simulated: Throughput
}

export interface Throughput {
  readonly requestsPerSecond: number
  /** Output tokens. */
  readonly tokensPerSecond: number
}

interface Run {
  readonly workload: string
  readonly measured: readonly MeasuredRequest[]
  readonly simulated: readonly ReplayedRequest[]
}

export interface RequestComparison {
  readonly requests: RequestErrors
  /** The runs one by one; empty when there is only one. */
  readonly runs: readonly RunErrors[]
}

export function compareRequests(
  coefficients: StepCoefficients,
  limits: EngineLimits,
  measured: readonly MeasuredRequest[],
): RequestComparison {
  const runs = [...Map.groupBy(measured, (request) => request.workload)].map(
    ([workload, own]): Run => ({ workload, measured: own, simulated: replayRequests(coefficients, limits, own) }),
  )
  return {
    requests: errorsOf(runs),
    runs: runs.length === 1 ? [] : runs.map((run) => ({ workload: run.workload, ...errorsOf([run]) })),
  }
}

function errorsOf(runs: readonly Run[]): RequestErrors {
  const measured = runs.flatMap((run) => run.measured)
  const simulated = runs.flatMap((run) => run.simulated)
  const latency = (of: (request: ReplayedRequest) => number | undefined): LatencyErrors =>
    compareLatency(
      measured.map((request) => of({ ...request, tpotUs: tpotUs(request) })).filter(isKnown),
      simulated.map(of).filter(isKnown),
    )
  return {
    count: measured.length,
    ttft: latency((request) => request.ttftUs),
    e2e: latency((request) => request.e2eUs),
    tpot: latency((request) => request.tpotUs),
    throughput: compareThroughput(runs),
  }
}

function isKnown(value: number | undefined): value is number {
  return value !== undefined
}

function compareLatency(measuredUs: readonly number[], simulatedUs: readonly number[]): LatencyErrors {
  const measuredMs = summarize(measuredUs)
  const simulatedMs = summarize(simulatedUs)
  return {
    meanError: simulatedMs.mean / measuredMs.mean - 1,
    p50Error: simulatedMs.p50 / measuredMs.p50 - 1,
    p90Error: simulatedMs.p90 / measuredMs.p90 - 1,
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
    p90: quantile(us, 0.9) / 1e3,
    p95: quantile(us, 0.95) / 1e3,
    p99: quantile(us, 0.99) / 1e3,
  }
}

function compareThroughput(runs: readonly Run[]): ThroughputErrors {
  const measured = throughputOf(runs.map((run) => ({ requests: run.measured, ends: endsOf(run, run.measured) })))
  const simulated = throughputOf(runs.map((run) => ({ requests: run.measured, ends: endsOf(run, run.simulated) })))
  return {
    requestsError: simulated.requestsPerSecond / measured.requestsPerSecond - 1,
    tokensError: simulated.tokensPerSecond / measured.tokensPerSecond - 1,
    measured,
    simulated,
  }
}

function endsOf(run: Run, answers: readonly { readonly e2eUs: number }[]): number[] {
  return run.measured.map((request, i) => request.arrivalUs + (answers[i]?.e2eUs as number))
}

/** Runs have their own clocks: what was served is divided by the sum of their lengths. */
function throughputOf(
  runs: readonly { readonly requests: readonly MeasuredRequest[]; readonly ends: readonly number[] }[],
): Throughput {
  let seconds = 0
  let count = 0
  let tokens = 0
  for (const { requests, ends } of runs) {
    const firstAt = requests.reduce((at, request) => Math.min(at, request.arrivalUs), Number.POSITIVE_INFINITY)
    seconds += (ends.reduce((at, end) => Math.max(at, end), 0) - firstAt) / 1e6
    count += requests.length
    tokens += requests.reduce((sum, request) => sum + request.outputTokens, 0)
  }
  return { requestsPerSecond: count / seconds, tokensPerSecond: tokens / seconds }
}
