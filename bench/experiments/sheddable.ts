import { join } from 'node:path'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { type Play, play } from './kit/play.ts'
import { installProbabilisticAdmitter } from './kit/probabilistic-admitter.ts'
import type { Cell, Table } from './kit/result.ts'

/** People and work that may be shed on the same engines: against the probabilistic admitter of llm-d. */
const SCENARIO = join(import.meta.dirname, 'scenarios/sheddable.yaml')

/** As llm-d does it: the queue is in the engines, which take whatever comes. */
const TO_THE_ENGINES = {
  'platform.fairness.order': 'fifo',
  'platform.admission.mode': 'observe',
  'platform.ladder.enabled': false,
  'platform.pools.0.limit': { kind: 'fixed', concurrencyMax: 4_096 },
}

const POLICIES: ReadonlyArray<readonly [string, (seed: number) => Pick<Play, 'set' | 'install'>]> = [
  ['everything to the engines', () => ({ set: TO_THE_ENGINES })],
  [
    'llm-d’s probabilistic admitter',
    (seed) => ({
      set: TO_THE_ENGINES,
      install: ({ policies }, fleet) =>
        installProbabilisticAdmitter(policies.dispatcher, fleet, { sheddableTenant: 'sheddable', seed }),
    }),
  ],
  ['spillway, sheddable in the offline band', () => ({ set: {} })],
]

/**
 * `offline.interTokenMs`, the one setting of the trade: mean time per token up to which a replica is given offline work.
 * People are promised 50 ms; 24 is what holds where nothing is set.
 */
const CURVE_MS = [12, 14, 16, 18, 20, 22, 24, 28, 32, 40]

const CURVE_COLUMNS = ['offline.interTokenMs', ...[1, 1.3, 2].flatMap((load) => [`${load} ×: p99 ms`, 'sheddable/s'])]

/** Sheddable requests a second, beside 20 of people; 44 are what the engines can do. */
const RATES = [24, 36, 68]

const COLUMNS = [
  'policy',
  'critical TTFT p50 ms',
  'p99 ms',
  'p99 change %',
  'critical good %',
  'sheddable done/s',
  'all done, tokens/s',
  'tokens lost %',
  'critical refused',
]

interface Seen {
  readonly p50: number
  readonly p99: number
  readonly good: number
  readonly sheddable: number
  readonly tokens: number
  readonly refused: number
}

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const tables: Table[] = []
  const verdict: string[] = []
  const curves: Seen[][] = []
  const admitters: Seen[] = []
  for (const rate of RATES) {
    const seen: Seen[] = []
    for (const [label, how] of POLICIES) {
      progress(`${rate} a second: ${label}`)
      seen.push(await look(how, rate, seeds))
    }
    const [base, theirs, ours] = seen as [Seen, Seen, Seen]
    const curve: Seen[] = []
    for (const ms of CURVE_MS) {
      progress(`${rate} a second: ${ms} ms`)
      curve.push(await look(() => ({ set: { 'platform.offline.interTokenMs': ms } }), rate, seeds))
    }
    curves.push(curve)
    admitters.push(theirs)
    const rows = POLICIES.map(([label], index) => cellsOf(label, seen[index]!, base))
    const load = ((20 + rate) / 44).toFixed(1)
    tables.push({ title: `${load} × capacity: ${rate} sheddable requests a second`, columns: COLUMNS, rows })
    verdict.push(
      `${load} ×: P99 of people’s first token ${change(ours.p99, base.p99)} with ${lost(ours, base)}; llm-d’s admitter ${change(theirs.p99, base.p99)} with ${lost(theirs, base)}. In time: ${ours.good.toFixed(1)}, ${theirs.good.toFixed(1)} and, without either, ${base.good.toFixed(1)} % of people’s answers.`,
    )
  }
  const curveRow = (label: Cell, of: (load: number) => Seen): Cell[] => [
    label,
    ...RATES.flatMap((_, load) => [of(load).p99, of(load).sheddable]),
  ]
  tables.push({
    title: 'The trade: people’s p99 against sheddable work, by one setting',
    columns: CURVE_COLUMNS,
    rows: [
      ...CURVE_MS.map((ms, index) => curveRow(String(ms), (load) => curves[load]![index]!)),
      curveRow('llm-d’s admitter', (load) => admitters[load]!),
    ],
  })
  verdict.push(`At the same sheddable work as llm-d’s admitter: ${sameWork(curves, admitters)}.`)
  return { tables, verdict }
}

/** Our P99 where the curve has as much sheddable work as theirs, between the two settings nearest to it. */
function sameWork(curves: readonly Seen[][], admitters: readonly Seen[]): string {
  const parts = admitters.map((theirs, load) => {
    const curve = curves[load]!
    const above = curve.findIndex(({ sheddable }) => sheddable >= theirs.sheddable)
    const [low, high] = [curve[above - 1], curve[above]]
    const at = `${((20 + RATES[load]!) / 44).toFixed(1)} ×, ${theirs.sheddable.toFixed(1)}/s`
    if (low === undefined || high === undefined) return `${at}: beyond the curve`
    const ratio = (theirs.sheddable - low.sheddable) / (high.sheddable - low.sheddable)
    const ms = CURVE_MS[above - 1]! + ratio * (CURVE_MS[above]! - CURVE_MS[above - 1]!)
    const p99 = low.p99 + ratio * (high.p99 - low.p99)
    return `${at}: p99 ${p99.toFixed(0)} ms with ${ms.toFixed(1)} ms a token, theirs ${theirs.p99.toFixed(0)} ms`
  })
  return parts.join('; ')
}

const percent = (now: number, before: number): number => 100 * (now / before - 1)
const change = (now: number, before: number): string => `${percent(now, before).toFixed(0)} %`
function lost(now: Seen, before: Seen): string {
  const change = percent(now.tokens, before.tokens)
  return change > 0.05 ? `${change.toFixed(1)} % more tokens` : `${Math.abs(change).toFixed(1)} % of the tokens lost`
}

function cellsOf(label: string, seen: Seen, base: Seen): Cell[] {
  const isBase = seen === base
  return [
    label,
    seen.p50,
    seen.p99,
    isBase ? null : percent(seen.p99, base.p99),
    seen.good,
    seen.sheddable,
    Math.round(seen.tokens),
    isBase ? null : -percent(seen.tokens, base.tokens),
    seen.refused,
  ]
}

async function look(
  how: (seed: number) => Pick<Play, 'set' | 'install'>,
  rate: number,
  seeds: readonly number[],
): Promise<Seen> {
  const all: Seen[] = []
  for (const seed of seeds) {
    const { set, ...rest } = how(seed)
    const paths = { ...set, 'workload.1.arrivals.ratePerS': rate }
    const report = await play({ scenario: SCENARIO, seed, set: paths, ...rest })
    const { critical, sheddable } = report.tenants as { critical: Tenant; sheddable: Tenant }
    all.push({
      p50: critical.latency.ttft.p50 ?? 0,
      p99: critical.latency.ttft.p99 ?? 0,
      good: 100 * critical.goodput.ratio,
      sheddable: sheddable.requests.completed / report.durationS,
      tokens: report.tokens.output / report.durationS,
      refused: critical.requests.shed,
    })
  }
  const over = (pick: (one: Seen) => number): number => mean(all.map(pick))
  return {
    p50: over((one) => one.p50),
    p99: over((one) => one.p99),
    good: over((one) => one.good),
    sheddable: over((one) => one.sheddable),
    tokens: over((one) => one.tokens),
    refused: over((one) => one.refused),
  }
}

type Tenant = Awaited<ReturnType<typeof play>>['tenants'][string]

await runExperiment({
  name: 'sheddable',
  title: 'People before work that may be shed: against llm-d’s admitter',
  about:
    'Two replicas (h100-llama-8b, about 44 requests a second) serve 20 requests a second of people and more and more that may be shed. llm-d publishes P99 reductions of 7 to 97 % at 5 to 20 % goodput lost for its probabilistic admitter; here it is run on the same engines and the same requests. *Lost* is against sending everything to the engines; tokens count whether or not they were in time, and what was queued in the engines at the end was still finished and counts.',
  seeds: 1,
  run,
})
