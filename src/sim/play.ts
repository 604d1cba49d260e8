import { secondsToUs, US_PER_S } from '../base/clock.ts'
import type { VirtualClock } from '../base/virtual-clock.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import type { EngineView } from '../engine/engine-view.ts'
import { fullWorkUs } from '../engine/full-work.ts'
import type { Journal } from '../lifecycle/ports.ts'
import { checkEnd, checkWindow } from './check-run.ts'
import { Client, type Serve } from './clients/client.ts'
import type { ClientScripts } from './clients/scripts.ts'
import { TraceClient } from './clients/trace-client.ts'
import { scheduleFaults } from './faults.ts'
import { type RoundTrips, type SimulatedGateway, serveFrom } from './gateway.ts'
import type { LawChecker } from './laws.ts'
import type { Collector } from './report/collector.ts'
import { type EngineLook, type EnginesUse, enginesUse, type PoolLook } from './report/report.ts'
import type { RetrievalWorld } from './retrieval-world.ts'
import type { Scenario, StreamSpec } from './scenario/scenario.ts'
import type { SharedWorld } from './sharing/shared-world.ts'
import { scaleTraffic } from './traces/scale-traffic.ts'
import type { TraceRequest } from './traces/trace.ts'
import type { SimulatedFleet } from './world.ts'

/**
 * The story of a simulated run: clients begin, faults happen, the clock runs until the scenario is over and every
 * request has ended; then nothing may be left behind.
 */
export interface SimulatedRun {
  readonly scenario: Scenario
  readonly seed: number
  readonly clock: VirtualClock
  /** One gateway per region; the first is for clients of streams without a region. */
  readonly gateways: readonly SimulatedGateway[]
  /** Where several gateways share the fleet. */
  readonly shared: SharedWorld | undefined
  readonly roundTrips: RoundTrips
  readonly journal: Journal
  readonly fleet: SimulatedFleet
  readonly retrieval: RetrievalWorld
  readonly scripts: ClientScripts
  /** Names and aliases of the chat models. */
  readonly models: ReadonlySet<string>
  readonly callers: ReadonlyArray<{ readonly tenant: Tenant; readonly key: Key; readonly group: string | undefined }>
  readonly collector: Collector
  readonly laws: LawChecker
  /** Ids of requests that are sent again end with which try they are. */
  readonly marksTries: boolean
  /** A recorded workload instead of the scenario's own. */
  readonly trace?: Iterable<TraceRequest>
  /** Called from time to time with the simulated time. */
  readonly onProgress: (atS: number) => void
}

/** Time after the last arrival in which requests may end; a ticket that is live after it has leaked. */
const AFTERMATH_S = 600

export interface RunEnd {
  readonly endAt: number
  readonly engines: EnginesUse
  /** What one unbounded cache for all replicas would have found, as a share of the prompts' tokens. */
  readonly prefixBestRatio: number | undefined
  readonly engineParts: ReadonlyMap<string, EnginesUse>
}

export async function play(run: SimulatedRun): Promise<RunEnd> {
  const { scenario, clock, gateways, collector, laws } = run
  const endAt = secondsToUs(scenario.durationS)
  // The first probes resolve in virtual time.
  for (const gateway of gateways) gateway.start()
  await clock.run(clock.now() + 1)
  if (run.trace === undefined) startClients(run, endAt)
  else startTrace(run, run.trace, endAt)
  scheduleFaults(clock, run, scenario.faults ?? [])
  const { warmUntil, windowUs } = collector.options
  watchWindows(run, windowUs, endAt)
  const parts = [...collector.parts].map(([name, part]) => ({ name, use: watchEngines(run, part.fromAt, part.toAt) }))
  const counted = watchEngines(run, warmUntil, endAt)
  const bestHits = watchBestHits(run, warmUntil)

  await clock.run(endAt)
  const engines = counted()
  const prefixBestRatio = bestHits()
  // A gateway without a ticket may still get one from another region, of its gateway or of its clients.
  const isAnythingLive = (): boolean =>
    gateways.some(({ platform, comingCount }) => platform.liveCount > 0 || comingCount > 0)
  for (const gateway of gateways) gateway.stop(isAnythingLive)
  checkWindow(run)
  await clock.run(endAt + secondsToUs(AFTERMATH_S))
  for (const { platform } of gateways) platform.costs.finish()
  laws.finish()
  laws.finishCosts()
  checkEnd(run)
  run.onProgress(scenario.durationS)
  return { endAt, engines, prefixBestRatio, engineParts: new Map(parts.map(({ name, use }) => [name, use()])) }
}

/** The gateway that a stream's clients use. */
function serveOf({ gateways, shared, roundTrips, journal }: SimulatedRun, spec: StreamSpec, tenantId: string): Serve {
  if (shared !== undefined) return shared.serveOf(spec, tenantId)
  const { region } = spec
  const home = region ?? (gateways[0] as SimulatedGateway).region
  if (gateways.length > 1 && !gateways.some((gateway) => gateway.region === home))
    throw new Error(`the workload names the region ${home}, but no pool is there`)
  return serveFrom(home, gateways, roundTrips, journal)
}

function startClients(run: SimulatedRun, endAt: number): void {
  const { scenario, clock, scripts, callers, seed } = run
  const sessions = new Map<string, number>()
  for (const spec of scenario.workload) {
    const senders = callers.filter(({ tenant, group }) => tenant.id === spec.tenant || group === spec.tenant)
    if (senders.length === 0) throw new Error(`the workload names the tenant ${spec.tenant}, but there is none`)
    for (const caller of senders) {
      const count = (sessions.get(caller.tenant.id) ?? 0) + 1
      sessions.set(caller.tenant.id, count)
      const name = count === 1 ? caller.tenant.id : `${caller.tenant.id}.${count}`
      const serve = serveOf(run, spec, caller.tenant.id)
      const own = { serve, caller, spec, name, marksTries: run.marksTries }
      new Client({ clock, scripts, seed, endAt, load: scenario.load ?? 1, ...own }).start()
    }
  }
}

function startTrace(run: SimulatedRun, requests: Iterable<TraceRequest>, endAt: number): void {
  const { scenario, clock, scripts, callers, seed, models } = run
  const { load = 1, traffic = {} } = scenario
  const spec = scenario.workload[0]
  if (spec === undefined) throw new Error('a scenario has at least one stream')
  const serve = serveOf(run, spec, spec.tenant)
  const scaled = scaleTraffic(requests, { seed, factorOf: (tenant) => load * (traffic[tenant ?? ''] ?? 1) })
  new TraceClient({ clock, scripts, serve, requests: scaled, callers, spec, models, endAt }).start()
}

/**
 * Reads the engines at the start of a stretch; the returned function reads them at its end and returns the difference.
 */
function watchEngines({ clock, fleet }: SimulatedRun, fromAt: number, toAt: number): () => EnginesUse {
  let before = lookAt(fleet)
  let after: EngineLook | undefined
  clock.at(fromAt, () => {
    before = lookAt(fleet)
  })
  clock.at(toAt, () => {
    after = lookAt(fleet)
  })
  return () => enginesUse(before, after ?? lookAt(fleet), toAt - fromAt)
}

/** Counts from `fromAt` until the returned function is called. */
function watchBestHits({ clock, fleet }: SimulatedRun, fromAt: number): () => number | undefined {
  let before = fleet.bestHits.count
  clock.at(fromAt, () => {
    before = fleet.bestHits.count
  })
  return () => {
    const after = fleet.bestHits.count
    if (before === undefined || after === undefined || after.queries === before.queries) return undefined
    return (after.hits - before.hits) / (after.queries - before.queries)
  }
}

/** Reads the engines and checks the dispatcher's invariants at the end of every window. */
function watchWindows(run: SimulatedRun, windowUs: number, endAt: number): void {
  const { clock, fleet, collector } = run
  let last = lookAt(fleet)
  const look = (at: number): void => {
    const now = lookAt(fleet)
    collector.windows.engines(at - windowUs, enginesUse(last, now, windowUs).engine)
    last = now
    run.onProgress(at / US_PER_S)
    checkWindow(run)
    if (at + windowUs <= endAt) clock.at(at + windowUs, () => look(at + windowUs))
  }
  clock.at(windowUs, () => look(windowUs))
}

function lookAt(fleet: SimulatedFleet): EngineLook {
  const look = new Map<string, { replicaCount: number; views: EngineView[]; fullWorkUs: number; again: PoolLook[] }>()
  const seen = new Set<string>()
  for (const replica of fleet.all()) {
    const { poolId } = replica.replica
    const pool = look.get(poolId) ?? { replicaCount: 0, views: [], fullWorkUs: 0, again: [] }
    const views = replica.views()
    const workUs = views.reduce((sum, view) => sum + fullWorkUs(replica.fullWorkPrices, view), 0)
    pool.replicaCount++
    pool.views.push(...views)
    pool.fullWorkUs += workUs
    look.set(poolId, pool)
    const { engineId } = replica.replica
    if (engineId !== undefined && seen.has(engineId)) pool.again.push({ replicaCount: 1, views, fullWorkUs: workUs })
    if (engineId !== undefined) seen.add(engineId)
  }
  return look
}
