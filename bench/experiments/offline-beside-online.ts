import { join } from 'node:path'
import type { OfflineWaste } from '../../src/policy/limits/offline-waste.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { type Play, play } from './kit/play.ts'
import type { Cell, Table } from './kit/result.ts'

/** What does offline work cost online work, without a bound of its own and with it? */
const SCENARIO = join(import.meta.dirname, 'scenarios/sheddable.yaml')

/** No offline turn is called off. */
const KEPT = { 'platform.offline.wasteRatioMax': 0 }
/** The promise of the scenario's tenants: offline turns may fill the engines up to it, as everybody may. */
const UNBOUNDED = { 'platform.offline.interTokenMs': 50, 'platform.offline.kvShare': 1 }

/** Offline requests a second beside 20 online; 44 are what the engines can do. */
const RATES = [24, 68]

const ROWS: ReadonlyArray<readonly [string, number, Readonly<Record<string, unknown>>]> = [
  ['none', 0, {}],
  ...RATES.flatMap((rate) => [
    [`${rate}/s, unbounded`, rate, { ...UNBOUNDED, ...KEPT }] as const,
    [`${rate}/s, unbounded, called off`, rate, UNBOUNDED] as const,
    [`${rate}/s, bounded`, rate, KEPT] as const,
    [`${rate}/s, bounded, called off`, rate, {}] as const,
  ]),
]

/** Rows from the last, which is as shipped, back to the unbounded one. */
const UNBOUNDED_BEFORE = 3

interface Seen {
  readonly ttftP95: number
  readonly gapP50: number
  readonly gapP95: number
  readonly good: number
  readonly refused: number
  readonly done: number
  /** Of offline tokens. */
  readonly wastedRatio: number
}

/** A workload without arrivals is not allowed; one in a thousand seconds is none. */
const NEARLY_NONE = 0.001

async function look(rate: number, set: Readonly<Record<string, unknown>>, seed: number): Promise<Seen> {
  const paths = { ...set, 'workload.1.arrivals.ratePerS': rate === 0 ? NEARLY_NONE : rate }
  let waste: OfflineWaste | undefined
  const install: NonNullable<Play['install']> = ({ policies }) => {
    waste = policies.offlineWaste
  }
  const { tenants } = await play({ scenario: SCENARIO, seed, set: paths, install })
  const { doneTokens = 0, wastedTokens = 0 } = waste?.view() ?? {}
  const { critical, sheddable } = tenants as { critical: Tenant; sheddable: Tenant | undefined }
  return {
    ttftP95: critical.latency.ttft.p95 ?? 0,
    gapP50: critical.latency.itl.p50 ?? 0,
    gapP95: critical.latency.itl.p95 ?? 0,
    good: critical.goodput.ratio,
    refused: critical.requests.shed,
    done: sheddable?.requests.completed ?? 0,
    wastedRatio: wastedTokens / Math.max(1, doneTokens + wastedTokens),
  }
}

type Tenant = Awaited<ReturnType<typeof play>>['tenants'][string]

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const all: Seen[][] = []
  for (const [label, rate, set] of ROWS) {
    progress(label)
    const seen: Seen[] = []
    for (const seed of seeds) seen.push(await look(rate, set, seed))
    all.push(seen)
  }
  const over = (row: number, pick: (seen: Seen) => number): number => mean((all[row] as Seen[]).map(pick))
  const rows = ROWS.map(([label], row): Cell[] => [
    label,
    over(row, (seen) => seen.ttftP95),
    over(row, (seen) => seen.ttftP95) / over(0, (seen) => seen.ttftP95),
    over(row, (seen) => seen.gapP50),
    over(row, (seen) => seen.gapP95),
    over(row, (seen) => seen.gapP95) / over(0, (seen) => seen.gapP95),
    over(row, (seen) => seen.done),
    100 * over(row, (seen) => seen.wastedRatio),
    over(row, (seen) => seen.good),
    over(row, (seen) => seen.refused),
  ])
  const columns = [
    'offline offered',
    'online TTFT p95 ms',
    '× none',
    'inter-token p50 ms',
    'p95 ms',
    '× none',
    'offline done',
    'offline wasted %',
    'online goodput',
    'online refused',
  ]
  const tables: Table[] = [{ title: 'Online work beside offline work', columns, rows }]
  const last = ROWS.length - 1
  const ratios = (all[last] as Seen[]).map(({ done }, i) => done / (all[last - UNBOUNDED_BEFORE]?.[i]?.done ?? 1))
  const worst = (pick: (seen: Seen) => number): number =>
    Math.max(...(all[last] as Seen[]).map((seen, i) => pick(seen) / pick(all[0]?.[i] as Seen)))
  const verdict = [
    `At ${RATES.at(-1)}/s, worst of ${seeds.length} seeds: TTFT p95 × ${worst((seen) => seen.ttftP95).toFixed(2)}, inter-token p95 × ${worst((seen) => seen.gapP95).toFixed(2)}, with ${(100 * Math.min(...ratios)).toFixed(0)} % of the unbounded offline work at least, and ${(100 * Math.max(...(all[last] as Seen[]).map(({ wastedRatio }) => wastedRatio))).toFixed(1)} % of offline tokens wasted at most.`,
  ]
  return { tables, verdict }
}

await runExperiment({
  name: 'offline-beside-online',
  title: 'What offline work costs online work',
  about:
    'Two replicas (h100-llama-8b, about 44 requests a second) serve 20 requests a second online and more and more offline. Unbounded, offline turns are given as long as the promise of 50 ms a token holds for all; bounded, up to half of it and half of the memory (`offline.interTokenMs`, `offline.kvShare`). Called off: the youngest offline turns give way to online requests that would wait (`offline.wasteRatioMax`).',
  seeds: 3,
  run,
})
