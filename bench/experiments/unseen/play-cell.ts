import { join } from 'node:path'
import { engineOptionsOf } from '../../../src/assembly/engine-options.ts'
import { usToSeconds } from '../../../src/base/clock.ts'
import type { Settled } from '../../../src/domain/entry.ts'
import { type FullWorkPrices, fullWorkPrices } from '../../../src/engine/full-work.ts'
import { weightedTokens } from '../../../src/policy/planning/cost.ts'
import { isGood, isLate } from '../../../src/sim/report/stats.ts'
import { COMPARISONS } from '../../../src/sim/scenario/comparisons.ts'
import { checkScenario, loadScenario } from '../../../src/sim/scenario/fs-scenario.ts'
import type { Scenario } from '../../../src/sim/scenario/scenario.ts'
import { configOf } from '../../../src/sim/scenario/scenario-config.ts'
import { withTraceTenants } from '../../../src/sim/scenario/scenario-trace.ts'
import { withPaths } from '../../../src/sim/scenario/variants.ts'
import { type SimulateOptions, simulate } from '../../../src/sim/simulate.ts'
import type { TraceRequest } from '../../../src/sim/traces/trace.ts'
import { type Promises, workS } from './cell-requests.ts'
import { sharingOf } from './statistics.ts'

/** One policy on one cell's requests, through the whole platform in virtual time. */
const SCENARIO = join(import.meta.dirname, '../scenarios/unseen.yaml')

export interface Cell {
  readonly requests: readonly TraceRequest[]
  readonly seconds: number
  /** What comes before does not count: engines fill and lengths are learned. */
  readonly warmupS: number
  readonly promises: Promises
  readonly seed: number
}

export interface Way {
  readonly set: Readonly<Record<string, unknown>>
  readonly install?: SimulateOptions['onAssembled']
}

export interface CellResult {
  readonly goodPerS: number
  /** In percent of the admitted. */
  readonly late: number
  readonly ttftP95Ms: number
  /** In percent of what came. */
  readonly refused: number
  /** Served on a lower rung, in percent of what came. */
  readonly degraded: number
  /** In percent of the refusals that the audit judged; undefined where it judged none. */
  readonly falseRefusals: number | undefined
  readonly judged: number
  readonly jain: number
  readonly gapMax: number
}

export interface PlayedCell extends CellResult {
  /** By the request's place in the cell: those that came after the warm-up and were late or never answered. */
  readonly missed: ReadonlySet<number>
}

/** Plays those of the cell's requests that `isSent` names; others count as refused. */
export async function playCell(cell: Cell, way: Way, isSent?: (index: number) => boolean): Promise<PlayedCell> {
  const { warmupS, seed } = cell
  const indexes = cell.requests.flatMap((_, index) => (isSent === undefined || isSent(index) ? [index] : []))
  const requests = indexes.map((index) => cell.requests[index] as TraceRequest)
  const scenario = scenarioOf(cell, way)
  const missed = new Set<number>()
  const slo = configOf(scenario, seed).config.slos[0] as { ttftMs: number; interTokenMs: number; totalMs: number }
  const sloUs = { name: '', ttftUs: slo.ttftMs * 1e3, interTokenUs: slo.interTokenMs * 1e3, totalUs: slo.totalMs * 1e3 }
  const hear = (entry: Settled): void => {
    const isMissed = isLate(entry, sloUs) || !isGood(entry, sloUs)
    if (isMissed) missed.add(indexes[Number(entry.ticketId.slice('trace-'.length))] as number)
  }
  const report = await simulate(scenario, {
    seed,
    trace: requests,
    onEntry: (entry) => {
      if (entry.kind === 'settled') hear(entry)
    },
    ...(way.install && { onAssembled: way.install }),
  })
  if (report.laws.length > 0) throw new Error(`law ${report.laws[0]?.law} is broken`)
  const counted = cell.requests.filter(({ atUs }) => atUs >= warmupS * 1e6)
  const { falseReject, rightReject } = report.prediction
  const judged = falseReject + rightReject
  const { arrived, shed } = report.requests
  return {
    goodPerS: report.goodput.requestsPerS,
    late: 100 * report.lateRatio,
    ttftP95Ms: report.latency.ttft.p95 ?? 0,
    refused: (100 * (shed + counted.length - arrived)) / counted.length,
    degraded: (100 * report.degraded) / counted.length,
    falseRefusals: judged === 0 ? undefined : (100 * falseReject) / judged,
    judged,
    ...sharingOf(tenantsOf(counted, (id) => report.tenants[id]?.served ?? 0)),
    missed,
  }
}

function tenantsOf(
  requests: readonly TraceRequest[],
  servedTo: (tenantId: string) => number,
): Array<{ asked: number; served: number }> {
  const asked = new Map<string, number>()
  for (const { tenant = '', promptTokens, outputTokens } of requests) {
    const cost = weightedTokens({ promptTokens, outputTokens, cachedTokens: 0 })
    asked.set(tenant, (asked.get(tenant) ?? 0) + cost)
  }
  return [...asked].map(([id, cost]) => ({ asked: cost, served: servedTo(id) }))
}

export function scenarioOf({ requests, seconds, warmupS, promises }: Omit<Cell, 'seed'>, { set }: Way): Scenario {
  const { file } = loadScenario(SCENARIO)
  const trace = { path: 'cell', format: 'cell', notes: new Set<string>(), requests: () => requests }
  const tree = withTraceTenants(file.tree as Record<string, unknown>, trace)
  const paths = {
    durationS: seconds,
    warmupS,
    windowS: Math.max(5, Math.round(seconds / 10)),
    'platform.slos.0.ttftMs': promises.ttftMs,
    'platform.slos.0.totalMs': promises.totalMs,
    ...set,
  }
  return checkScenario(file, withPaths(tree, paths))
}

/** What an engine's time is worth, on the scenario's engine. */
export function enginePrices(): FullWorkPrices {
  const { scenario } = loadScenario(SCENARIO)
  return fullWorkPrices(engineOptionsOf(configOf(scenario, 1).config, 'h100-llama-8b'))
}

/** Seconds of a full engine that the engine really does in a second, asked for far more than it can do. */
export async function measureCapacity(cell: Cell, prices: FullWorkPrices): Promise<number> {
  const { seconds, seed } = cell
  const patient = { ...cell, promises: { ttftMs: 3_600_000, totalMs: 7_200_000 } }
  const queue = { 'platform.queue.requestsMax': 100_000, 'platform.queue.waitMsMax': 3_600_000 }
  const fromS = cell.warmupS
  let work = 0
  await simulate(scenarioOf(patient, { set: { ...COMPARISONS['fifo'], ...queue } }), {
    seed,
    trace: cell.requests,
    onEntry: (entry) => {
      if (entry.kind !== 'settled' || entry.outcome !== 'completed') return
      const atS = usToSeconds(entry.at)
      if (atS >= fromS && atS < seconds) work += workS(prices, entry.usage)
    },
  })
  return work / (seconds - fromS)
}
