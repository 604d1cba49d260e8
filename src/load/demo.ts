import type { Clock } from '../base/clock.ts'
import type { Running } from '../base/running.ts'
import { DEMO_KEYS } from '../config/demo.ts'
import { RecentTally, Tally, type TenantTally } from '../sim/report/tally.ts'
import { loadScenario } from '../sim/scenario/fs-scenario.ts'
import type { Scenario } from '../sim/scenario/scenario.ts'
import { configOf, streamsOf } from '../sim/scenario/scenario-config.ts'
import { checkTarget } from './http-bench-target.ts'
import { type LoadEnd, runLoad } from './live-load.ts'

/**
 * The demo: calm, a spike by one tenant, recovery, in a few minutes. Its workload is the shipped scenario `demo`,
 * scaled to the given time; it runs against the platform at `url`, or against one that is started for the demo.
 */
export interface DemoOptions {
  /** Undefined: the platform at `likelyUrl` if one runs there, else one of our own. */
  readonly url: string | undefined
  readonly likelyUrl: string
  /** Starts a platform on a free port, if none runs. */
  readonly startOwn: () => Promise<Running>
  readonly seconds: number
  readonly onStart: (start: {
    readonly url: string
    readonly isOwn: boolean
    readonly phases: readonly DemoPhase[]
  }) => void
  readonly onTick: (view: DemoView) => void
  readonly stop?: Promise<unknown>
  /** Real time if absent. */
  readonly clock?: Clock
}

export interface DemoPhase {
  readonly name: 'calm' | 'spike' | 'recovery'
  readonly fromS: number
  readonly toS: number
}

/** The last few seconds, tenant by tenant. */
export interface DemoView {
  readonly atS: number
  readonly phase: DemoPhase
  /** The time that the tenants' counts cover. */
  readonly seconds: number
  readonly tenants: readonly DemoTenant[]
}

export interface DemoTenant extends TenantTally {
  readonly id: string
  readonly sloTtftMs: number
  readonly contract: string
}

export interface DemoEnd {
  readonly url: string
  readonly noisy: string
  /** How late the requests were sent; a large value means that the machine was busy. */
  readonly lagMs: LoadEnd['lagMs']
  readonly phases: ReadonlyArray<{ readonly phase: DemoPhase; readonly tenants: readonly DemoTenant[] }>
}

export const DEMO_SECONDS = 300
/** The tenant of the spike. */
const NOISY = 'globex'
/** Long enough for a percentile, short enough to see a change. */
const RECENT_S = 6
const SEED = 1

export async function demo(options: DemoOptions): Promise<DemoEnd> {
  const { scenario } = loadScenario('demo')
  const squeezed = squeeze(scenario, options.seconds)
  const phases = phasesOf(squeezed)
  const { url, own } = await findOrStart(options)
  try {
    options.onStart({ url, isOwn: own !== undefined, phases })
    return await run(squeezed, phases, url, options)
  } finally {
    await own?.close()
  }
}

async function run(
  scenario: Scenario,
  phases: readonly DemoPhase[],
  url: string,
  options: DemoOptions,
): Promise<DemoEnd> {
  const setup = configOf(scenario, SEED)
  const streams = streamsOf(scenario, setup)
  const tenants = streams.map(({ caller }) => caller.tenant)
  const keys = new Map(DEMO_KEYS.map(({ tenantId, secret }) => [tenantId, secret]))
  const recent = new RecentTally(RECENT_S)
  const byPhase = phases.map((phase) => ({ phase, tally: new Tally() }))
  const phaseAt = (atS: number): DemoPhase => phases.find(({ toS }) => atS < toS) ?? phases[phases.length - 1]!
  const viewOf = (tally: Tally): DemoTenant[] =>
    tenants.map(({ id, slo, contract }) => ({ ...tally.tenant(id), id, sloTtftMs: slo.ttftUs / 1_000, contract }))
  const { lagMs } = await runLoad({
    url,
    streams,
    durationS: options.seconds,
    seed: SEED,
    scale: 1,
    keyOf: (tenantId) => keys.get(tenantId),
    modelOf: (model) => model,
    take: (entry) => {
      recent.take(entry)
      if (entry.kind !== 'arrived' && entry.kind !== 'settled') return
      // A request belongs to the phase in which it was sent, however long its answer takes.
      const sentS = (entry.kind === 'arrived' ? entry.at : entry.arrivedAt) / 1_000_000
      byPhase.find(({ phase }) => phase === phaseAt(sentS))?.tally.take(entry)
    },
    inFlightMax: 10_000,
    requestsMax: 1_000_000,
    ignoresEos: false,
    graceS: 20,
    onTick: ({ atS }) =>
      options.onTick({
        atS,
        phase: phaseAt(atS),
        seconds: RECENT_S,
        tenants: viewOf(recent.view(atS * 1_000_000)),
      }),
    ...(options.stop !== undefined && { stop: options.stop }),
    ...(options.clock !== undefined && { clock: options.clock }),
  })
  return { url, noisy: NOISY, lagMs, phases: byPhase.map(({ phase, tally }) => ({ phase, tenants: viewOf(tally) })) }
}

async function findOrStart(options: DemoOptions): Promise<{ url: string; own: Running | undefined }> {
  const url = options.url ?? options.likelyUrl
  const keys = new Map(DEMO_KEYS.map(({ tenantId, secret }) => [secret, tenantId]))
  try {
    await checkTarget(url, { keys, models: [], model: 'spill-large' })
    return { url, own: undefined }
  } catch (error) {
    if (options.url !== undefined) throw error
  }
  const own = await options.startOwn()
  return { url: own.address, own }
}

/** The same scenario, scaled to another duration. */
function squeeze(scenario: Scenario, seconds: number): Scenario {
  const ratio = seconds / scenario.durationS
  return {
    ...scenario,
    durationS: seconds,
    workload: scenario.workload.map((spec) =>
      spec.phases === undefined
        ? spec
        : {
            ...spec,
            phases: spec.phases.map((phase) => ({ ...phase, fromS: phase.fromS * ratio, toS: phase.toS * ratio })),
          },
    ),
  }
}

function phasesOf(scenario: Scenario): DemoPhase[] {
  const spike = scenario.workload.flatMap(({ phases = [] }) => phases)[0]
  const fromS = spike?.fromS ?? scenario.durationS
  const toS = spike?.toS ?? scenario.durationS
  return [
    { name: 'calm', fromS: 0, toS: fromS },
    { name: 'spike', fromS, toS },
    { name: 'recovery', fromS: toS, toS: scenario.durationS },
  ]
}
