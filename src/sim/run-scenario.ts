import { secondsToUs, US_PER_S } from '../base/clock.ts'
import type { VirtualClock } from '../base/virtual-clock.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import type { EngineView } from '../engine/engine-view.ts'
import { ControlLoop } from '../lifecycle/control-loop.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { serveRequest } from '../lifecycle/serve-request.ts'
import { Client } from './client.ts'
import type { Collector } from './collector.ts'
import { scheduleFaults } from './faults.ts'
import type { LawChecker } from './laws.ts'
import { type EngineUse, engineUse } from './report.ts'
import type { Scenario } from './scenario.ts'
import type { ClientScripts } from './scripts.ts'
import type { SimulatedFleet } from './world.ts'

/**
 * The story of a simulated run: clients begin, faults strike, the clock runs until the scenario is over and everybody
 * has been served or refused, and nothing is left behind.
 */
export interface Run {
  readonly scenario: Scenario
  readonly seed: number
  readonly clock: VirtualClock
  readonly platform: Platform
  readonly fleet: SimulatedFleet
  readonly scripts: ClientScripts
  readonly callers: ReadonlyArray<{ readonly tenant: Tenant; readonly key: Key; readonly group: string | undefined }>
  readonly collector: Collector
  readonly laws: LawChecker
  /** Called now and then with the simulated time. */
  readonly onProgress: (atS: number) => void
}

const TICK_US = US_PER_S

/** After the last arrival everybody may finish; what still lives then has leaked. */
const AFTERMATH_S = 600

export interface RunEnd {
  readonly endAt: number
  readonly engine: EngineUse
}

export async function runScenario(run: Run): Promise<RunEnd> {
  const { scenario, clock, platform, fleet, collector, laws } = run
  const endAt = secondsToUs(scenario.durationS)
  const loop = new ControlLoop(platform, TICK_US)
  // The first probes need virtual time to pass through their promises.
  void loop.start()
  await clock.run(clock.now() + 1)
  startClients(run, endAt)
  scheduleFaults(clock, fleet, scenario.faults ?? [])
  const before = watchEngines(run)

  await clock.run(endAt)
  const after = viewsOf(fleet)
  loop.stop()
  platform.policies.dispatcher.assertInvariants()
  await clock.run(endAt + secondsToUs(AFTERMATH_S))
  laws.finish()
  run.onProgress(scenario.durationS)
  const replicas = [...fleet.all()].length
  const warmUntil = collector.options.warmUntil
  return { endAt, engine: engineUse(before.views, after, endAt - Math.max(warmUntil, before.at), replicas) }
}

function startClients(run: Run, endAt: number): void {
  const { scenario, clock, platform, scripts, callers, seed } = run
  const sessions = new Map<string, number>()
  for (const spec of scenario.workload) {
    const senders = callers.filter(({ tenant, group }) => tenant.id === spec.tenant || group === spec.tenant)
    if (senders.length === 0) throw new Error(`the workload names the tenant ${spec.tenant}, but there is none`)
    for (const caller of senders) {
      const count = (sessions.get(caller.tenant.id) ?? 0) + 1
      sessions.set(caller.tenant.id, count)
      const name = count === 1 ? caller.tenant.id : `${caller.tenant.id}.${count}`
      const serve = (...asked: Parameters<typeof serveRequest> extends [unknown, ...infer Rest] ? Rest : never) =>
        serveRequest(platform, ...asked)
      new Client({ clock, scripts, serve, caller, spec, seed, name, endAt }).start()
    }
  }
}

/** Looks at the engines at the end of the warm-up and at every window's end. */
function watchEngines(run: Run): { views: readonly EngineView[]; at: number } {
  const { clock, fleet, collector, scenario } = run
  const { windowUs, warmUntil } = collector.options
  const replicas = [...fleet.all()].length
  const before = { views: viewsOf(fleet), at: clock.now() }
  let last = before.views
  const warm = (): void => {
    before.views = viewsOf(fleet)
    before.at = clock.now()
  }
  if (warmUntil > clock.now()) clock.at(warmUntil, warm)
  const look = (at: number): void => {
    const views = viewsOf(fleet)
    collector.windows.engines(at - windowUs, engineUse(last, views, windowUs, replicas))
    last = views
    run.onProgress(at / US_PER_S)
    run.platform.policies.dispatcher.assertInvariants()
    if (at + windowUs <= secondsToUs(scenario.durationS)) clock.at(at + windowUs, () => look(at + windowUs))
  }
  clock.at(windowUs, () => look(windowUs))
  return before
}

function viewsOf(fleet: SimulatedFleet): readonly EngineView[] {
  return [...fleet.all()].flatMap((replica) => replica.views())
}
