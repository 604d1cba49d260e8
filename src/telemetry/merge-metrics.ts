import { formatMetricValue } from './exposition.ts'

/**
 * What are the numbers of a whole host, when each of its processes has its own?
 *
 * Counters and histograms add. A gauge adds too where it counts things that each process has its own of (waiting
 * requests, leases), is the same in all where it states a fact that all of them know (a price, a release), and is shown
 * for each process, with a label `process`, where only that says anything (memory, the event loop).
 *
 * Texts are those of our own `Registry`; a line that is not of that form is left out.
 */
export interface ProcessMetrics {
  /** Number of the process; undefined for one that has ended or is leaving: only what adds up is taken from it. */
  readonly process: number | undefined
  readonly text: string
}

/** `parallel`: a price per token of all is 1 ÷ Σ 1/x, because tokens add and the price does not. */
type MergeRule = 'sum' | 'max' | 'min' | 'parallel' | 'each'

/** Gauges that do not add up. What is not here does. */
const GAUGE_RULES: Readonly<Record<string, MergeRule>> = {
  process_resident_memory_bytes: 'each',
  process_start_time_seconds: 'each',
  spillway_heap_used_bytes: 'each',
  spillway_event_loop_utilization_ratio: 'each',
  spillway_event_loop_delay_seconds: 'each',
  spillway_build_info: 'max',
  spillway_pool_usd_per_hour: 'max',
  spillway_pool_usd_per_million_tokens: 'parallel',
  spillway_pool_utilization_ratio: 'max',
  spillway_pool_fairness_index: 'min',
  spillway_pool_pressure: 'max',
  spillway_pool_backlogged_tenants: 'max',
  spillway_replica_ready: 'max',
  spillway_replica_denied: 'max',
  spillway_offline_shedding: 'max',
  spillway_breaker_open: 'max',
  spillway_rollout_percent: 'max',
}

interface MergedFamily {
  readonly head: string
  readonly rule: MergeRule
  readonly isGauge: boolean
  /** By series, as `name{labels}`, in the order of first sight. */
  readonly series: Map<string, number>
}

export function mergeMetrics(texts: readonly ProcessMetrics[]): string {
  const families = new Map<string, MergedFamily>()
  for (const { process, text } of texts) mergeOne(families, process, text)
  let merged = ''
  for (const { head, series } of families.values()) {
    merged += head
    for (const [name, value] of series) merged += `${name} ${formatMetricValue(value)}\n`
  }
  return merged
}

/** What stays of a process that has ended: its counters and histograms, so that sums never fall. */
export function lastingMetrics(texts: readonly ProcessMetrics[]): string {
  return mergeMetrics(texts.map(({ text }) => ({ process: undefined, text })))
}

function mergeOne(families: Map<string, MergedFamily>, process: number | undefined, text: string): void {
  let help = ''
  let family: MergedFamily | undefined
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) help = line
    else if (line.startsWith('# TYPE ')) family = familyOf(families, help, line)
    else if (line !== '' && family !== undefined) addSample(family, process, line)
  }
}

function familyOf(families: Map<string, MergedFamily>, help: string, type: string): MergedFamily {
  const [, , name = '', kind] = type.split(' ')
  const known = families.get(name)
  if (known !== undefined) return known
  const isGauge = kind === 'gauge'
  const made: MergedFamily = {
    head: `${help}\n${type}\n`,
    rule: isGauge ? (GAUGE_RULES[name] ?? 'sum') : 'sum',
    isGauge,
    series: new Map(),
  }
  families.set(name, made)
  return made
}

function addSample({ rule, isGauge, series }: MergedFamily, process: number | undefined, line: string): void {
  if (isGauge && process === undefined) return
  const space = line.lastIndexOf(' ')
  const value = numberIn(line.slice(space + 1))
  if (space < 0 || Number.isNaN(value)) return
  const name = rule === 'each' ? withProcess(line.slice(0, space), process) : line.slice(0, space)
  const known = series.get(name)
  if (known === undefined || rule === 'each') series.set(name, value)
  else series.set(name, JOIN[rule](known, value))
}

const JOIN: Readonly<Record<Exclude<MergeRule, 'each'>, (a: number, b: number) => number>> = {
  sum: (a, b) => a + b,
  max: (a, b) => Math.max(a, b),
  min: (a, b) => Math.min(a, b),
  parallel: (a, b) => 1 / (1 / a + 1 / b),
}

function withProcess(series: string, process: number | undefined): string {
  const label = `process="${process ?? ''}"`
  return series.endsWith('}') ? `${series.slice(0, -1)},${label}}` : `${series}{${label}}`
}

function numberIn(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY
  if (text === '-Inf') return Number.NEGATIVE_INFINITY
  return text === '' ? Number.NaN : Number(text)
}
