import { statSync } from 'node:fs'
import type { TraceRequest } from '../../src/sim/traces/trace.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import type { Table, Cell as TableCell } from './kit/result.ts'
import { cellRequests, type Promises, promisesFor, workS } from './unseen/cell-requests.ts'
import { playClairvoyant } from './unseen/clairvoyant.ts'
import { type FoundFolder, type FoundTrace, findTraces } from './unseen/find-traces.ts'
import { type Cell, type CellResult, enginePrices, measureCapacity, playCell } from './unseen/play-cell.ts'
import { POLICIES, type Policy } from './unseen/policies.ts'
import { ProgressBar } from './unseen/progress-bar.ts'
import { intervalOf, pairedInterval, shownInterval } from './unseen/statistics.ts'

/**
 * Any folder of traces, which nobody tuned for: ours against CoDel, VTC, a bounded queue, an admitter like llm-d's, and
 * hindsight, at several loads, with confidence intervals over seeds.
 */
interface Limits {
  readonly requestsMax: number
  readonly seconds: number | undefined
  readonly totalMs: number | undefined
  readonly ttftMs: number | undefined
}

/** A trace with what is known of it before any policy is played. */
interface Prepared {
  readonly trace: FoundTrace
  readonly promises: Promises
  /** Seconds of a full engine that the engine does in a second, and requests of the trace's mean length. */
  readonly workPerS: number
  readonly requestsPerS: number
  readonly seconds: number
  /** How long an answer takes, typically. */
  readonly holdS: number
}

const REQUESTS_MAX = 4_000
/** A cell lasts at least this long, and this many typical answers, of which the first ones do not count. */
const SECONDS_MIN = 60
const ANSWERS_LONG = 12
const WARMUP_RATIO = 1 / 6
/** The run that shows what the engine can do, in cells: only what has ended counts, and long answers end late. */
const CAPACITY_CELLS = 3
/** A token of a busy engine. */
const TOKEN_S = 0.02
/** Asked for this much of what it can do, an engine shows what it can do. */
const SATURATING_LOAD = 3

const prices = enginePrices()
const workOf = (request: TraceRequest): number => workS(prices, request)

async function run(options: ExperimentOptions): Promise<Findings> {
  const { operand: folder, seeds, loads, only, given, progress } = options
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new Error(`${folder} is not a folder. Give the path of a folder with traces.`)
  const found = findTraces(folder)
  const traces = found.traces.filter(({ name }) => only === undefined || only.some((part) => name.includes(part)))
  if (traces.length === 0) throw new Error(noTraces(folder, found))
  const policies = policiesFor(given['policies'] as string | undefined)
  const limits = limitsOf(given)
  const bar = new ProgressBar(traces.length * (1 + loads.length * policies.length * seeds.length), progress)
  const tables: Table[] = [tracesTable(found)]
  const all: Compared[] = []
  for (const trace of traces) {
    bar.step(`${trace.name}: capacity`)
    const prepared = await prepare(trace, limits)
    const rows: TableCell[][] = []
    for (const load of loads) {
      const compared = await compareAt(prepared, load, { policies, seeds, limits, bar })
      all.push(compared)
      rows.push(...rowsOf(compared, policies))
    }
    tables.push({ title: titleOf(prepared), columns: COLUMNS, rows })
  }
  const set = given['set']
  return {
    tables,
    verdict: verdictOf(all, loads, policies, seeds.length),
    ...(typeof set === 'string' && { recordAs: `unseen-${set}` }),
  }
}

function limitsOf(given: ExperimentOptions['given']): Limits {
  const numberOf = (name: string): number | undefined => {
    const value = given[name]
    if (value === undefined) return undefined
    if (!(Number(value) > 0)) throw new Error(`--${name} is ${value}, not a number above 0`)
    return Number(value)
  }
  const totalS = numberOf('total-s')
  return {
    requestsMax: numberOf('requests') ?? REQUESTS_MAX,
    seconds: numberOf('seconds'),
    totalMs: totalS === undefined ? undefined : totalS * 1_000,
    ttftMs: numberOf('ttft-ms'),
  }
}

function policiesFor(names: string | undefined): readonly Policy[] {
  if (names === undefined) return POLICIES
  return names.split(',').map((name) => {
    const policy = POLICIES.find((each) => each.name === name)
    const known = POLICIES.map((each) => each.name).join(', ')
    if (policy === undefined) throw new Error(`--policies: there is no ${name}. Known: ${known}.`)
    return policy
  })
}

function noTraces(folder: string, { skipped, traces }: FoundFolder): string {
  const why = skipped.map((file) => `\n  ${file.name}: ${file.why}`).join('')
  const names = traces.map(({ name }) => `\n  ${name}`).join('')
  return `${folder} has no trace to play.${why}${names && `\nKnown, but left out by --only:${names}`}`
}

async function prepare(trace: FoundTrace, limits: Limits): Promise<Prepared> {
  const requests = trace.requestsOf(1)
  const standard = promisesFor(requests, prices)
  const promises = { ttftMs: limits.ttftMs ?? standard.ttftMs, totalMs: limits.totalMs ?? standard.totalMs }
  const holdS = Math.max(2, mean(requests.map(({ outputTokens }) => outputTokens)) * TOKEN_S)
  const seconds = limits.seconds ?? Math.max(SECONDS_MIN, ANSWERS_LONG * holdS)
  const requestsMax = CAPACITY_CELLS * SATURATING_LOAD * limits.requestsMax
  const wish = { seed: 1, workPerS: SATURATING_LOAD, seconds: CAPACITY_CELLS * seconds, requestsMax }
  const sent = cellRequests(requests, workOf, wish)
  const cell = { ...sent, warmupS: sent.seconds / 2, promises, seed: 1 }
  const workPerS = await measureCapacity(cell, prices)
  if (!(workPerS > 0)) throw new Error(`${trace.name}: nothing was answered within ${seconds} s. Give more --seconds.`)
  return { trace, promises, workPerS, requestsPerS: workPerS / mean(requests.map(workOf)), seconds, holdS }
}

interface Compared {
  readonly load: number
  /** By the policy's name, one for each seed. */
  readonly results: ReadonlyMap<string, readonly CellResult[]>
}

async function compareAt(
  { trace, promises, workPerS, seconds, holdS }: Prepared,
  load: number,
  how: {
    readonly policies: readonly Policy[]
    readonly seeds: readonly number[]
    readonly limits: Limits
    readonly bar: ProgressBar
  },
): Promise<Compared> {
  const results = new Map<string, CellResult[]>()
  for (const seed of how.seeds) {
    const wish = { seed, workPerS: load * workPerS, seconds, requestsMax: how.limits.requestsMax }
    const sent = cellRequests(trace.requestsOf(seed), workOf, wish)
    const cell: Cell = { ...sent, warmupS: WARMUP_RATIO * sent.seconds, promises, seed }
    for (const { name, label, way } of how.policies) {
      how.bar.step(`${trace.name}, ${load} ×, seed ${seed}: ${label}`)
      const played = way === undefined ? await playClairvoyant(cell, workOf, holdS) : await playCell(cell, way(seed))
      results.set(name, [...(results.get(name) ?? []), played])
    }
  }
  return { load, results }
}

const COLUMNS = [
  'load, policy',
  'good/s',
  'against the first, %',
  'late of admitted %',
  'TTFT p95 ms',
  'refused %',
  'degraded %',
  'false refusals %',
  'Jain',
  'largest gap %',
]

function rowsOf({ load, results }: Compared, policies: readonly Policy[]): TableCell[][] {
  const base = results.get(policies[0]?.name ?? '') ?? []
  return policies.map(({ name, label }, index) => {
    const own = results.get(name) ?? []
    const over = (pick: (one: CellResult) => number | undefined): number | null => {
      const values = own.map(pick).filter((value) => value !== undefined)
      return values.length === 0 ? null : mean(values)
    }
    return [
      `${load} × ${label}`,
      shownInterval(intervalOf(own.map(({ goodPerS }) => goodPerS)), 2),
      index === 0 ? null : shownInterval(gainOf(own, base), 1, true),
      over(({ late }) => late),
      over(({ ttftP95Ms }) => ttftP95Ms),
      over(({ refused }) => refused),
      over(({ degraded }) => degraded),
      policies[index]?.isEnforced === true ? falseShare(own) : null,
      over(({ jain }) => jain),
      over(({ gapMax }) => gapMax),
    ]
  })
}

/** Of all refusals that were judged, over the seeds: a seed with three of them says no more than three. */
function falseShare(results: readonly CellResult[]): number | null {
  const judged = results.reduce((sum, one) => sum + one.judged, 0)
  const wrong = results.reduce((sum, one) => sum + ((one.falseRefusals ?? 0) * one.judged) / 100, 0)
  return judged === 0 ? null : (100 * wrong) / judged
}

/** In percent of the mean of what it is compared with. */
function gainOf(own: readonly CellResult[], base: readonly CellResult[]): ReturnType<typeof intervalOf> {
  const scale = 100 / Math.max(1e-9, mean(base.map(({ goodPerS }) => goodPerS)))
  const of = (all: readonly CellResult[]): number[] => all.map(({ goodPerS }) => goodPerS * scale)
  return pairedInterval(of(own), of(base))
}

function titleOf({ trace, promises, requestsPerS, seconds }: Prepared): string {
  const promised = `first token ${promises.ttftMs / 1_000} s, answer ${Math.round(promises.totalMs / 1_000)} s`
  return `${trace.name} (${trace.format}): ${requestsPerS.toFixed(1)} requests a second are 1 ×; promised: ${promised}; cells of ${Math.round(seconds)} s at most`
}

function tracesTable({ traces, skipped }: FoundFolder): Table {
  const rows = [
    ...traces.map(({ name, format, notes }): TableCell[] => [name, format, notes.join('; ') || null]),
    ...skipped.map(({ name, why }): TableCell[] => [name, 'left out', why]),
  ]
  return { title: 'What the folder holds', columns: ['file', 'format', 'to know'], rows }
}

/** For each load, over all traces: seeds of all traces are paired with their own. */
function verdictOf(
  all: readonly Compared[],
  loads: readonly number[],
  policies: readonly Policy[],
  seedCount: number,
): string[] {
  const [first, ...others] = policies
  return loads.flatMap((load) => {
    const here = all.filter((each) => each.load === load)
    const relative = (name: string): number[] =>
      here.flatMap(({ results }) => {
        const scale = mean((results.get(first?.name ?? '') ?? []).map(({ goodPerS }) => goodPerS))
        return (results.get(name) ?? []).map(({ goodPerS }) => (100 * goodPerS) / Math.max(1e-9, scale))
      })
    const parts = others.map(({ name, label }) => {
      const gain = pairedInterval(relative(name), relative(first?.name ?? ''))
      return `${label} ${shownInterval(gain, 1, true)} %`
    })
    const distance = distanceShare(here)
    const reached =
      distance === undefined ? '' : ` Of the distance from CoDel to hindsight ${first?.label} goes ${distance} %.`
    return [
      `${load} ×, ${here.length} traces × ${seedCount} seeds, against ${first?.label}: ${parts.join('; ')}.${reached}`,
    ]
  })
}

function distanceShare(here: readonly Compared[]): string | undefined {
  const sum = (name: string): number | undefined => {
    const shares = here.map(({ results }) => {
      const top = results.get('clairvoyant')
      const own = results.get(name)
      if (top === undefined || own === undefined) return Number.NaN
      return mean(own.map(({ goodPerS }) => goodPerS)) / mean(top.map(({ goodPerS }) => goodPerS))
    })
    return shares.some(Number.isNaN) ? undefined : mean(shares)
  }
  const ours = sum('ours')
  const codel = sum('codel')
  if (ours === undefined || codel === undefined || codel >= 1) return undefined
  return ((100 * (ours - codel)) / (1 - codel)).toFixed(0)
}

await runExperiment({
  name: 'unseen',
  title: 'Traces that nobody tuned for',
  about:
    'Every trace of a folder, at several multiples of what the engine can do with it (one `h100-llama-8b`; what it can do is measured on the trace), window by window as the seeds choose. Promises are derived from the trace: a first token within 2 s (or four times the reading of its longest prompts), 50 ms a token, the whole answer within a minute (or what its longest answers take at 50 ms a token). *Good*: answered with all promises kept. Intervals are 95 %, by Student’s t over seeds; differences are paired by seed. *False refusals*: by the running audit, of those that it judged. *Jain* and *largest gap*: of what tenants got of their fair shares of the work done. *Hindsight* plays each cell up to twelve times, leaves out the largest requests before late answers, and keeps its best round.',
  seeds: 3,
  hasLoads: true,
  loads: '0.8,1,1.3,2.2,4',
  operand: 'FOLDER',
  options: {
    requests: { type: 'string' },
    seconds: { type: 'string' },
    policies: { type: 'string' },
    set: { type: 'string' },
    'total-s': { type: 'string' },
    'ttft-ms': { type: 'string' },
  },
  run,
})
