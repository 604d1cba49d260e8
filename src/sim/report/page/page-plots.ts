import type { ReportSeries, SeriesWindow } from '../report-series.ts'
import type { Plot, PlotSeries } from './plot.ts'

/** The plots of a run. */
export function plotsOf(series: ReportSeries, windows: readonly SeriesWindow[], windowS: number): Plot[] {
  const atS = windows.map((window) => window.atS)
  const perS = (of: (window: SeriesWindow) => number): number[] => windows.map((window) => of(window) / windowS)
  const failed: PlotSeries = {
    name: 'failed',
    color: 'var(--failed)',
    kind: 'line',
    values: perS((window) => window.failed),
  }
  const traffic: Plot = {
    id: 'traffic',
    title: 'Arrivals, admitted and shed',
    caption: 'Requests a second: what was asked, and what became of it',
    atS,
    unit: '',
    height: 200,
    series: [
      { name: 'admitted', color: 'var(--served)', kind: 'stack', values: perS((window) => window.admitted) },
      { name: 'shed', color: 'var(--shed)', kind: 'stack', values: perS((window) => notAdmitted(window)) },
      ...(series.totals.failed === 0 ? [] : [failed]),
      { name: 'arrivals', color: 'var(--asked)', kind: 'line', values: perS((window) => window.arrivals) },
    ],
  }
  const plots = [traffic, latency(series, windows, atS)]
  if (windows.some((window) => window.itlP95 !== undefined)) plots.push(pace(windows, atS))
  if (!series.isLive) plots.push(queue(windows, atS))
  const rungs = rungPlot(windows, atS)
  if (rungs !== undefined) plots.push(rungs)
  if (!series.isLive) plots.push(engines(windows, atS))
  return plots
}

/** Refused at admission; tickets that lost their place in the queue were admitted before. */
const notAdmitted = (window: SeriesWindow): number =>
  Math.max(0, Math.min(window.shed, window.arrivals - window.admitted))

function latency(series: ReportSeries, windows: readonly SeriesWindow[], atS: readonly number[]): Plot {
  const p95 = windows.map((window) => window.ttftP95)
  const p50 = windows.map((window) => window.ttftP50)
  const finite = [...p95, ...p50].filter((value): value is number => value !== undefined && Number.isFinite(value))
  const promises = promisesOf(series)
  const largest = Math.max(1, ...finite, ...promises)
  const smallest = Math.min(largest, ...finite.filter((value) => value > 0))
  return {
    id: 'latency',
    title: 'Time to first token, against the promise',
    caption: 'Of those who were let in; at the top edge: never',
    atS,
    unit: 'ms',
    height: 200,
    isLogarithmic: largest / smallest > 12,
    series: [
      { name: 'p95', color: 'var(--slow)', kind: 'line', values: p95 },
      { name: 'p50', color: 'var(--calm)', kind: 'line', values: p50 },
      ...promises.map(
        (ms): PlotSeries => ({
          name: `promise ${ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`}`,
          color: 'var(--promise)',
          kind: 'dashed',
          values: windows.map(() => ms),
        }),
      ),
    ],
  }
}

/** Most promise lines in a plot, one for each different promise: more would be unreadable. */
const PROMISES_MAX = 3

function promisesOf(series: ReportSeries): number[] {
  const all = new Set(series.tenants.flatMap(({ sloTtft }) => sloTtft ?? []))
  return [...all].toSorted((a, b) => a - b).slice(0, PROMISES_MAX)
}

function pace(windows: readonly SeriesWindow[], atS: readonly number[]): Plot {
  const values = windows.map((window) => window.itlP95)
  return {
    id: 'pace',
    title: 'Time per token',
    caption: 'Mean of an answer, at the 95th percentile of answers',
    atS,
    unit: 'ms',
    series: [{ name: 'p95', color: 'var(--slow)', kind: 'line', values }],
  }
}

function queue(windows: readonly SeriesWindow[], atS: readonly number[]): Plot {
  const values = windows.map((window) => window.queueDepth)
  return {
    id: 'queue',
    title: 'Queue',
    caption: 'Most requests waiting for a turn at once',
    atS,
    unit: '',
    series: [{ name: 'waiting', color: 'var(--served)', kind: 'area', values }],
  }
}

const RUNG_COLORS = ['var(--rung0)', 'var(--rung1)', 'var(--rung2)', 'var(--rung3)', 'var(--rung4)', 'var(--rung5)']
/** From no reduction to the most; unknown rungs come last. */
const RUNG_ORDER = ['full', 'trim-retrieval', 'trim-context', 'cap-output', 'smaller-model', 'shed-offline']

function rungPlot(windows: readonly SeriesWindow[], atS: readonly number[]): Plot | undefined {
  const seen = new Set(windows.flatMap(({ rungs }) => Object.keys(rungs)))
  seen.add('full')
  if (seen.size < 2) return undefined
  const names = [...seen].toSorted((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1))
  return {
    id: 'rungs',
    title: 'Rungs of the ladder',
    caption: 'Share of the admitted that was served on each',
    atS,
    unit: '%',
    max: 1,
    series: names.map((name, i) => ({
      name,
      color: RUNG_COLORS[Math.min(i, RUNG_COLORS.length - 1)] ?? '',
      kind: 'stack',
      values: windows.map(({ rungs }) => rungs[name] ?? 0),
    })),
  }
}

function rankOf(rung: string): number {
  const place = RUNG_ORDER.indexOf(rung)
  return place < 0 ? RUNG_ORDER.length : place
}

function engines(windows: readonly SeriesWindow[], atS: readonly number[]): Plot {
  return {
    id: 'engines',
    title: 'Engine use',
    caption: 'Work done as a share of what full engines would do, and the share of memory that contexts hold',
    atS,
    unit: '%',
    max: 1,
    series: [
      { name: 'work', color: 'var(--served)', kind: 'line', values: windows.map(({ utilisation }) => utilisation) },
      { name: 'KV memory', color: 'var(--calm)', kind: 'line', values: windows.map(({ kv }) => kv) },
    ],
  }
}
