import type { Tenant } from '../../domain/tenant.ts'
import type { CheckedExpectation } from '../scenario/expectations.ts'
import type { Report } from './report.ts'

/**
 * The data of the report's page: the run as windows of time, its tenants as rows, its expectations as sentences. Plain
 * data, so that a live run, a simulated one and a stored JSON report are drawn by the same code.
 */
export interface ReportSeries {
  readonly title: string
  readonly about: string
  readonly seed: number
  readonly durationS: number
  readonly windowS: number
  readonly windows: readonly SeriesWindow[]
  readonly tenants: readonly SeriesTenant[]
  readonly expectations: readonly CheckedExpectation[]
  readonly totals: SeriesTotals
  /** The variants of the scenario, for comparison. */
  readonly variants: ReadonlyArray<{ readonly name: string; readonly totals: SeriesTotals }>
  /** A live server does not report its queues and engines. */
  readonly isLive: boolean
}

export interface SeriesTotals {
  readonly arrived: number
  readonly completed: number
  readonly shed: number
  readonly failed: number
  /** Share of the requests that were answered within the promise. */
  readonly goodputRatio: number
  readonly goodputPerS: number
  readonly outputTokensPerS: number
  /** Milliseconds. */
  readonly ttftP95: number | undefined
  readonly itlP95: number | undefined
  readonly utilisation: number | undefined
}

/**
 * Counts are of the window; latencies are in milliseconds, infinite for tickets that were admitted and lost their
 * place.
 */
export interface SeriesWindow {
  readonly atS: number
  readonly arrivals: number
  readonly admitted: number
  readonly shed: number
  readonly completed: number
  readonly failed: number
  readonly queueDepth: number
  readonly ttftP50: number | undefined
  readonly ttftP95: number | undefined
  readonly itlP95: number | undefined
  readonly utilisation: number
  readonly kv: number
  /** Share of the admitted tickets on each rung, from the full one down. */
  readonly rungs: Readonly<Record<string, number>>
}

export interface SeriesTenant {
  readonly id: string
  readonly weight: number
  /** Weighted tokens. */
  readonly served: number
  /** Share of all served tokens. */
  readonly share: number
  readonly arrived: number
  readonly completed: number
  readonly shed: number
  readonly ttftP95: number | undefined
  readonly sloTtft: number | undefined
}

export interface SeriesFacts {
  readonly about: string
  readonly windowS: number
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly expectations: readonly CheckedExpectation[]
  readonly variants: Readonly<Record<string, Report>>
  readonly isLive: boolean
}

export function seriesOf(report: Report, facts: SeriesFacts): ReportSeries {
  const served = Object.values(report.tenants).reduce((sum, tenant) => sum + tenant.served, 0)
  return {
    title: report.scenario,
    about: facts.about,
    seed: report.seed,
    durationS: report.durationS,
    windowS: facts.windowS,
    windows: report.windows.map(({ queued, rungs, ...window }) => ({
      ...window,
      queueDepth: queued,
      rungs: sharesOf(rungs),
    })),
    tenants: Object.entries(report.tenants).map(([id, tenant]) => {
      const slo = facts.tenants.get(id)?.slo
      return {
        id,
        weight: tenant.weight,
        served: tenant.served,
        share: served === 0 ? 0 : tenant.served / served,
        arrived: tenant.requests.arrived,
        completed: tenant.requests.completed,
        shed: tenant.requests.shed,
        ttftP95: tenant.latency.ttft.p95,
        sloTtft: slo === undefined ? undefined : slo.ttftUs / 1_000,
      }
    }),
    expectations: facts.expectations,
    totals: totalsOf(report, facts.isLive),
    variants: Object.entries(facts.variants).map(([name, variant]) => ({
      name,
      totals: totalsOf(variant, facts.isLive),
    })),
    isLive: facts.isLive,
  }
}

function totalsOf(report: Report, isLive: boolean): SeriesTotals {
  const { requests, goodput, tokens, latency, engine, durationS } = report
  return {
    arrived: requests.arrived,
    completed: requests.completed,
    shed: requests.shed,
    failed: requests.failed,
    goodputRatio: goodput.ratio,
    goodputPerS: goodput.requestsPerS,
    outputTokensPerS: tokens.output / Math.max(1e-6, durationS),
    ttftP95: latency.ttft.p95,
    itlP95: latency.itl.p95,
    utilisation: isLive ? undefined : engine.utilisation,
  }
}

function sharesOf(counts: Readonly<Record<string, number>>): Record<string, number> {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return Object.fromEntries(Object.entries(counts).map(([rung, count]) => [rung, total === 0 ? 0 : count / total]))
}
