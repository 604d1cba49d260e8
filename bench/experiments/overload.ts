import { COMPARISONS } from '../../src/sim/scenario/comparisons.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import { playAll } from './kit/play.ts'
import type { Cell } from './kit/result.ts'

/** Goodput of one H100 that is asked for 1.3 and 2.2 times what it can do. */
const CAPACITY_PER_S = 22
const TRACE_PER_S = 5.5

interface Row {
  readonly label: string
  readonly set: Readonly<Record<string, unknown>>
  /** Goodput of the prototype in ADR 0001, at 1.3 and 2.2 times the capacity. */
  readonly yardstick: readonly [number, number] | readonly [null, null]
}

const ROWS: readonly Row[] = [
  { label: 'first come, first served', set: COMPARISONS['fifo']!, yardstick: [6.8, 3.3] },
  {
    label: 'CoDel (5 ms, 100 ms)',
    set: COMPARISONS['codel']!,
    yardstick: [22.1, 23.2],
  },
  {
    // As its authors use it: what is beyond the limit is refused at once, and nobody waits.
    label: 'gradient limit, no queue',
    set: { ...COMPARISONS['gradient'], 'platform.queue.requestsMax': 1 },
    yardstick: [17.5, 19.2],
  },
  { label: 'spillway, nothing degraded', set: COMPARISONS['no-ladder']!, yardstick: [24.7, 29.4] },
  { label: 'spillway, with the ladder', set: COMPARISONS['spillway']!, yardstick: [null, null] },
]

const LOADS = [1.3, 2.2] as const

async function run({ trace, seeds, progress }: ExperimentOptions): Promise<Findings> {
  const tables = []
  const goodputs = new Map<string, number>()
  for (const [index, load] of LOADS.entries()) {
    const factor = (load * CAPACITY_PER_S) / TRACE_PER_S
    const rows: Cell[][] = []
    for (const { label, set, yardstick } of ROWS) {
      progress(`${load} ×: ${label}`)
      const over = await playAll(
        {
          scenario: 'azure-conv',
          set: { ...set, ...lengthOf(trace, factor) },
          ...(trace === undefined ? {} : { trace: { path: trace, factor } }),
        },
        seeds,
      )
      const goodput = over((report) => report.goodput.requestsPerS)
      goodputs.set(`${label} ${load}`, goodput)
      rows.push([
        label,
        goodput,
        yardstick[index] ?? null,
        over(({ goodput }) => goodput.tokensPerS),
        100 * over(({ requests }) => requests.shed / requests.arrived),
        100 * over(({ lateRatio }) => lateRatio),
        over(({ latency }) => latency.ttft.p95),
        over(({ latency }) => latency.itl.p50),
        over(({ engine }) => 100 * engine.utilisation),
      ])
    }
    tables.push({
      title: `${load} × capacity (${(load * CAPACITY_PER_S).toFixed(1)} requests a second)`,
      columns: COLUMNS,
      rows,
    })
  }
  return { tables, verdict: verdictOf(goodputs) }
}

const COLUMNS = [
  'policy',
  'good answers/s',
  'yardstick',
  'good tokens/s',
  'shed %',
  'late of admitted %',
  'TTFT p95 ms',
  'ITL p50 ms',
  'engine busy %',
]

/** A recorded half hour is shorter when it is played faster; the described load is given two minutes. */
function lengthOf(trace: string | undefined, factor: number): Record<string, unknown> {
  if (trace !== undefined) return { durationS: Math.floor(1_800 / factor), warmupS: 15 }
  return { durationS: 120, warmupS: 15, load: factor, 'workload.0.phases': [] }
}

function verdictOf(goodputs: ReadonlyMap<string, number>): string[] {
  return LOADS.map((load, index) => {
    const ours = goodputs.get(`spillway, nothing degraded ${load}`) ?? 0
    const target = ROWS[3]!.yardstick[index] ?? 0
    const others = ROWS.slice(0, 3).map(({ label }) => goodputs.get(`${label} ${load}`) ?? 0)
    const ahead = (100 * (ours / Math.max(...others) - 1)).toFixed(0)
    const judged = ours >= target ? 'met' : `missed by ${(100 * (1 - ours / target)).toFixed(0)} %`
    return `${load} ×: ${ours.toFixed(1)} good answers a second without degrading anybody, ${ahead} % more than the best of the other three here; yardstick ${target}: ${judged}.`
  })
}

await runExperiment({
  name: 'overload',
  title: 'Goodput beyond capacity: the Azure conversation trace',
  about:
    'One replica (h100-llama-8b) that can do about 22 of these requests a second is asked for more. An answer is good when its first token comes within 2 s and the others within 50 ms each on the average. All policies run on the same engine; *yardstick* is the row of the design that each is to be held against, from another simulator.',
  seeds: 1,
  run,
})
