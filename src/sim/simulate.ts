import { assemble } from '../assembly/assemble.ts'
import { engineOptionsOf } from '../assembly/engine-options.ts'
import { replicaPrices } from '../assembly/replica-price.ts'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Config } from '../config/schema.ts'
import { profileOf, toOrgWeights, toPools, toTenants } from '../config/to-domain.ts'
import type { Entry } from '../domain/entry.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { EngineOptions } from '../engine/engine.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { Backends, Journal } from '../lifecycle/ports.ts'
import { NO_ROOM_YET } from '../lifecycle/sharing/room-exchange.ts'
import { COST_DEFAULTS } from '../policy/planning/cost.ts'
import { ClientScripts } from './clients/scripts.ts'
import { SimulatedGateway } from './gateway.ts'
import { LawChecker } from './laws.ts'
import { SimulatedPeer } from './peer.ts'
import { play } from './play.ts'
import { Collector } from './report/collector.ts'
import { makeReport, type Report } from './report/report.ts'
import { SentOn } from './report/sent-on.ts'
import { RetrievalWorld, type RetrievalWorldOptions } from './retrieval-world.ts'
import type { Scenario } from './scenario/scenario.ts'
import { callersOf, chatModelsOf, configOf, gatewaysOf, partsOf, roundTripsOf } from './scenario/scenario-config.ts'
import { ScreensWorld } from './screens-world.ts'
import { SharedWorld, type SharedWorldParts } from './sharing/shared-world.ts'
import { SimulatedScaling } from './simulated-scaling.ts'
import type { TraceRequest } from './traces/trace.ts'
import { SimulatedFleet } from './world.ts'

/** One scenario, one seed, one report: the platform of the configuration in a simulated world. */
export interface SimulateOptions {
  readonly seed: number
  readonly onProgress?: (atS: number) => void
  /** A recorded workload instead of the scenario's own. */
  readonly trace?: Iterable<TraceRequest> | undefined
  /** Called with every journal entry, in order. */
  readonly onEntry?: (entry: Entry) => void
  /** Called with the platform before the run, so that experiments can replace policies. */
  readonly onAssembled?: (platform: Platform, fleet: SimulatedFleet, clock: VirtualClock) => void
  /** Engines hand over every token as it is made, as real ones do; slower, and the same but for what is learned from it. */
  readonly tellsEveryToken?: boolean
  /** Ids of requests that are sent again end with which try they are. */
  readonly marksTries?: boolean
  /** Measures real time; only the report's `wall` depends on it. */
  readonly wallMs?: () => number
}

const WINDOW_S = 5

export async function simulate(scenario: Scenario, options: SimulateOptions): Promise<Report> {
  const { config, groupOf } = configOf(scenario, options.seed)
  const clock = new VirtualClock()
  const tenants = new Map(toTenants(config).map((tenant) => [tenant.id, tenant]))
  const screens = new ScreensWorld(clock, options.seed, scenario.screens)
  const collector = collectorOf(scenario, tenants, screens)
  const laws = lawsOf(scenario, config, tenants)
  const journal = journalOf(laws, collector, options)
  const scripts = new ClientScripts()
  const fleet = new SimulatedFleet(clock, replicasOf(config), scripts, options.tellsEveryToken)
  const retrieval = await retrievalOf(scenario, config, { clock, journal, seed: options.seed })
  tellHoldouts(config, scripts)
  const roundTrips = roundTripsOf(scenario.regions)
  const world = { scenario, config, options, clock, fleet, tenants, laws, collector, screens }
  const shared = sharedWorldOf(world, retrieval)
  const scaling = scalingOf(world, () => gateways)
  const gateways: readonly SimulatedGateway[] =
    shared?.gateways ??
    gatewaysOf(scenario, config).map(
      ({ region, config: own }) =>
        new SimulatedGateway(region, clock, () => {
          const parts = { clock, journal, ...foundBy(retrieval), screener: screens.makeScreener(journal) }
          const platform = assemble(own, { ...parts, backends: backendsOf(region), actuators: scaling })
          options.onAssembled?.(platform, fleet, clock)
          return { platform }
        }),
    )
  /** The region's own engines, and the gateways of the other regions. */
  function backendsOf(fromRegion: string): Backends {
    const peers = new Map<string, SimulatedPeer>()
    return {
      of(replica) {
        if (fleet.has(replica)) return fleet.of(replica)
        const roundTripUs = roundTrips(fromRegion, replica.region)
        const there = () => gateways.find(({ region }) => region === replica.region) as SimulatedGateway
        const peer = peers.get(replica.region) ?? new SimulatedPeer({ clock, there, fromRegion, roundTripUs, scripts })
        peers.set(replica.region, peer)
        return peer
      },
    }
  }
  const { wallMs = () => 0 } = options
  const startedMs = wallMs()
  const end = await play({
    scenario,
    seed: options.seed,
    clock,
    gateways,
    shared,
    roundTrips,
    journal,
    fleet,
    retrieval,
    scripts,
    marksTries: options.marksTries ?? false,
    callers: callersOf(config, groupOf),
    models: chatModelsOf(config),
    collector,
    laws,
    ...(options.trace === undefined ? {} : { trace: options.trace }),
    onProgress: options.onProgress ?? (() => {}),
  })
  return makeReport(collector, {
    scenario: scenario.name,
    seed: options.seed,
    endAt: end.endAt,
    engines: end.engines,
    prefixBestRatio: end.prefixBestRatio,
    engineParts: end.engineParts,
    usdPerHour: usdPerHour(config),
    laws: [...laws.violations, ...(shared?.broken() ?? [])],
    ...(shared && { gateways: shared.view(end.endAt) }),
    scaling: scaling.view(end.endAt),
    wallSeconds: (wallMs() - startedMs) / 1_000,
  })
}

/** What the platform needs of retrieval. */
const foundBy = ({ retriever, answers }: RetrievalWorld) => ({ retriever, answers })

/** The engines know the right answers to holdout items. */
function tellHoldouts({ models }: Config, scripts: ClientScripts): void {
  for (const { rollout } of models)
    for (const { id, expected } of rollout?.holdout?.items ?? []) scripts.answers.set(id, expected ?? '')
}

interface SharedParts {
  readonly scenario: Scenario
  readonly config: Config
  readonly options: SimulateOptions
  readonly clock: VirtualClock
  readonly fleet: SimulatedFleet
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly laws: LawChecker
  readonly collector: Collector
  readonly screens: ScreensWorld
}

/** Laws, the report and whoever listens hear every entry; what a region sent on is reported once. */
function journalOf(laws: LawChecker, collector: Collector, { onEntry }: SimulateOptions): Journal {
  const sentOn = new SentOn()
  return {
    record(entry: Entry): void {
      laws.take(entry)
      if (!sentOn.has(entry)) collector.take(entry)
      onEntry?.(entry)
    },
  }
}

/** The actuator of pools with `autoscale`, at every gateway. */
function scalingOf(
  { scenario, config, options, clock, fleet, collector }: SharedParts,
  gateways: () => readonly SimulatedGateway[],
): SimulatedScaling {
  const platforms = () => gateways().map(({ platform }) => platform)
  const { warmUntil } = collector.options
  const { coldStartS } = scenario
  return new SimulatedScaling({ clock, seed: options.seed, config, fleet, platforms, coldStartS, warmUntil })
}

/** Several gateways over the one fleet, where the scenario has them. */
function sharedWorldOf(
  { scenario, config, options, clock, fleet, tenants, laws, collector, screens }: SharedParts,
  { retriever, answers }: RetrievalWorld,
): SharedWorld | undefined {
  if (scenario.gateways === undefined) return undefined
  const world: SharedWorld = new SharedWorld(
    {
      clock,
      seed: options.seed,
      scenario,
      region: gatewaysOf(scenario, config)[0]?.region ?? '',
      tenants: [...tenants.values()],
      weighedOrgs: new Set(toOrgWeights(config).keys()),
      isFair: config.fairness.order === FAIR_ORDER,
      ...limitsOf(config),
      backends: fleet,
      onLost: (processId) => laws.gatewayLost(processId),
      makePlatform(gateway, { name, ...own }) {
        const record = (entry: Entry): void => {
          world.take(entry, name)
          laws.take(entry, own.seconds.reporterId)
          collector.take(entry, name)
          options.onEntry?.(entry)
        }
        const seed = options.seed + GATEWAY_SEEDS * gateway
        const screener = screens.makeScreener({ record })
        const parts = { ...own, retriever, answers, screener, capacity: NO_ROOM_YET, journal: { record } }
        const platform = assemble({ ...config, seed }, parts)
        options.onAssembled?.(platform, fleet, clock)
        return platform
      },
    },
    scenario.gateways,
  )
  return world
}

/** Gives a corpus to every tenant whose stream uses retrieval. */
function retrievalOf(
  scenario: Scenario,
  config: Config,
  world: Pick<RetrievalWorldOptions, 'clock' | 'journal' | 'seed'>,
): Promise<RetrievalWorld> {
  const isUsed = scenario.workload.some((stream) => stream.retrieval !== undefined)
  const tenantIds = isUsed ? config.tenants.map(({ id }) => id) : []
  const { cacheTtlS } = config.retrieval
  return RetrievalWorld.make({ ...world, spec: scenario.retrieval, cacheTtlS, tenantIds })
}

function collectorOf(scenario: Scenario, tenants: ReadonlyMap<string, Tenant>, screens: ScreensWorld): Collector {
  return new Collector({
    tenants,
    startAt: 0,
    warmUntil: secondsToUs(scenario.warmupS ?? 0),
    windowUs: secondsToUs(scenario.windowS ?? WINDOW_S),
    outputWeight: COST_DEFAULTS.outputWeight,
    parts: partsOf(scenario),
    ...(scenario.screens && { isHarmful: (ticketId) => screens.isHarmful(ticketId) }),
  })
}

/** Gateways of several regions have budgets of their own, and the journal does not tell whose a ticket took. */
const isOneGateway = (scenario: Scenario, config: Config): boolean =>
  scenario.gateways === undefined && gatewaysOf(scenario, config).length === 1

function lawsOf(scenario: Scenario, config: Config, tenants: ReadonlyMap<string, Tenant>): LawChecker {
  return new LawChecker({
    tenants: isOneGateway(scenario, config) ? tenants.values() : [],
    judged: tenants.values(),
  })
}

/** The order whose bound is known (law L7). */
const FAIR_ORDER = 'deficit-round-robin'

/** Gateways choose by different dice. */
const GATEWAY_SEEDS = 7_919

/** What each replica may run at once, and hold. */
function limitsOf(config: Config): Pick<SharedWorldParts, 'sequencesMaxOf' | 'kvTokensMaxOf'> {
  const sequences = new Map<string, number>()
  const kvTokens = new Map<string, number>()
  for (const setup of toPools(config)) {
    for (const { id } of setup.pool.replicas) sequences.set(id, setup.limit.concurrencyMax)
  }
  for (const { replica, options } of replicasOf(config))
    kvTokens.set(replica.id, options.limits.blockCount * options.limits.blockTokens)
  return {
    sequencesMaxOf: (id) => sequences.get(id) ?? Number.POSITIVE_INFINITY,
    kvTokensMaxOf: (id) => kvTokens.get(id) ?? Number.POSITIVE_INFINITY,
  }
}

export function replicasOf(config: Config) {
  return toPools(config).flatMap((setup) => {
    const optionsOf = new Map<string, EngineOptions>()
    return setup.pool.replicas.map((replica) => {
      const profile = profileOf(setup, replica) ?? 'h100-llama-8b'
      const options = optionsOf.get(profile) ?? engineOptionsOf(config, profile)
      optionsOf.set(profile, options)
      return { replica, options }
    })
  })
}

function usdPerHour(config: Config): number {
  const paid = new Set<string>()
  let usd = 0
  for (const setup of toPools(config)) {
    const priceOf = replicaPrices(setup)
    for (const replica of setup.pool.replicas) {
      // An engine that several pools have is paid for once.
      const name = replica.engineId ?? replica.id
      if (!paid.has(name)) usd += priceOf(replica) ?? 0
      paid.add(name)
    }
  }
  return usd
}
