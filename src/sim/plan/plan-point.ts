import type { Report } from '../report/report.ts'
import type { WindowView } from '../report/windows.ts'
import type { PlanTarget } from './plan-scenario.ts'

/** What one run of a plan showed: times in milliseconds, infinite where a request never got its first token. */
export interface PlanRun {
  readonly seed: number
  readonly ttftP95: number
  readonly itlP95: number
  readonly peak: PlanPeak
  readonly goodputRatio: number
  readonly goodputPerS: number
  readonly refusedRatio: number
  /** Refused requests, by code. */
  readonly refusals: Readonly<Record<string, number>>
  readonly usdPerHour: number
  readonly usdPerMillionTokens: number | undefined
  readonly utilisation: number
}

/** The worst minute, by first tokens and by tokens; each may be another minute. */
export interface PlanPeak {
  readonly ttftP95: number
  readonly itlP95: number
  /** Start of the minute that was worst for first tokens. */
  readonly atS: number
  /** Largest share of a minute's requests that was refused. */
  readonly refusedRatio: number
}

/** One number of replicas, with a run for each seed until one fails. */
export interface PlanPoint {
  readonly replicas: number
  readonly runs: readonly PlanRun[]
  readonly meets: boolean
  /** What is above the target; empty when it is met. */
  readonly because: string
}

/** A p95 of fewer requests is only their slowest: such a minute is not looked at, unless there are no others. */
const WINDOW_REQUESTS_MIN = 20

export function runOf(report: Report): PlanRun {
  const { requests, goodput, cost, engine, seed } = report
  return {
    seed,
    ttftP95: slowest(report, ({ ttft }) => ttft.p95) ?? Number.POSITIVE_INFINITY,
    // Answers of one token have no time between tokens.
    itlP95: slowest(report, ({ itl }) => itl.p95) ?? 0,
    peak: peakOf(report),
    goodputRatio: goodput.ratio,
    goodputPerS: goodput.requestsPerS,
    refusedRatio: (requests.arrived - requests.completed) / Math.max(1, requests.arrived),
    refusals: report.refusals,
    usdPerHour: cost.perHour,
    usdPerMillionTokens: cost.perMillionTokens,
    utilisation: engine.utilisation,
  }
}

/** Of the bands whose clients wait for their answers: offline work may take its time. */
function slowest({ bands, latency }: Report, of: (view: Report['latency']) => number | undefined): number | undefined {
  const awaited = Object.entries(bands).flatMap(([band, view]) => (band === 'offline' ? [] : (of(view.latency) ?? [])))
  return awaited.length === 0 ? of(latency) : Math.max(...awaited)
}

function peakOf({ windows, latency }: Report): PlanPeak {
  const full = windows.filter(({ arrivals }) => arrivals >= WINDOW_REQUESTS_MIN)
  const looked = full.length > 0 ? full : windows.filter(({ arrivals }) => arrivals > 0)
  const ttftOf = (window: WindowView): number => window.ttftP95 ?? Number.POSITIVE_INFINITY
  const worst = looked.reduce<WindowView | undefined>(
    (most, window) => (most === undefined || ttftOf(window) > ttftOf(most) ? window : most),
    undefined,
  )
  return {
    ttftP95: worst === undefined ? (latency.ttft.p95 ?? Number.POSITIVE_INFINITY) : ttftOf(worst),
    itlP95: looked.reduce((most, { itlP95 }) => Math.max(most, itlP95 ?? 0), 0),
    atS: worst?.atS ?? 0,
    refusedRatio: looked.reduce((most, { arrivals, shed, failed }) => Math.max(most, (shed + failed) / arrivals), 0),
  }
}

/** What of the run is above the target; undefined when all of it is met, over the run and in its worst minute. */
export function shortfallOf(run: PlanRun, target: PlanTarget): string | undefined {
  const { peak } = run
  const misses = [
    run.refusedRatio > target.refusedRatioMax &&
      `${percent(run.refusedRatio)} of the requests are refused${codesOf(run)}`,
    run.ttftP95 > target.ttftMs && `first token p95 is ${ms(run.ttftP95)}`,
    run.itlP95 > target.itlMs && `token p95 is ${ms(run.itlP95)}`,
    peak.ttftP95 > target.ttftMs && `first token p95 is ${ms(peak.ttftP95)} in the worst minute`,
    peak.itlP95 > target.itlMs && `token p95 is ${ms(peak.itlP95)} in the worst minute`,
  ].filter((miss) => miss !== false)
  return misses.length === 0 ? undefined : misses.join(', ')
}

/** ` (predicted-late 31, lane-full 2)`, the most frequent first. */
function codesOf({ refusals }: PlanRun): string {
  const codes = Object.entries(refusals).toSorted((a, b) => b[1] - a[1])
  return codes.length === 0 ? '' : ` (${codes.map(([code, count]) => `${code} ${count}`).join(', ')})`
}

/** The worst of the runs of a point, for each figure: a plan promises what held with every seed. */
export function worstOf(point: PlanPoint): PlanRun {
  const most = (of: (run: PlanRun) => number): number => Math.max(...point.runs.map(of))
  const first = point.runs[0] as PlanRun
  return {
    ...first,
    ttftP95: most((run) => run.ttftP95),
    itlP95: most((run) => run.itlP95),
    refusedRatio: most((run) => run.refusedRatio),
    goodputRatio: -most((run) => -run.goodputRatio),
    goodputPerS: -most((run) => -run.goodputPerS),
    usdPerMillionTokens: first.usdPerMillionTokens,
    peak: {
      ...first.peak,
      ttftP95: most((run) => run.peak.ttftP95),
      itlP95: most((run) => run.peak.itlP95),
      refusedRatio: most((run) => run.peak.refusedRatio),
    },
  }
}

export const percent = (ratio: number): string => `${Number((100 * ratio).toPrecision(3))} %`

export const ms = (value: number): string => {
  if (!Number.isFinite(value)) return 'never'
  return value >= 1_000 ? `${Number((value / 1_000).toPrecision(3))} s` : `${Number(value.toPrecision(3))} ms`
}
