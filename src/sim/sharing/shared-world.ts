import type { Instant } from '../../base/clock.ts'
import { msToUs, secondsToUs } from '../../base/clock.ts'
import { Rng } from '../../base/rng.ts'
import type { VirtualClock } from '../../base/virtual-clock.ts'
import type { Entry, Settled } from '../../domain/entry.ts'
import type { Lease } from '../../domain/fleet.ts'
import type { Tenant } from '../../domain/tenant.ts'
import type { Platform } from '../../lifecycle/platform.ts'
import type { Backends, Leadership, SharedSecondStore } from '../../lifecycle/ports.ts'
import { serveRequest } from '../../lifecycle/serve-request.ts'
import { Renewals } from '../../lifecycle/sharing/renewals.ts'
import { RoomExchange } from '../../lifecycle/sharing/room-exchange.ts'
import type { SliceFetcher } from '../../lifecycle/sharing-ports.ts'
import type { BudgetParts } from '../../policy/budgets/scope-budget.ts'
import { PermitBook } from '../../policy/sharing/leased-permits.ts'
import { SHARING_DEFAULTS, SliceBook } from '../../policy/sharing/slice-book.ts'
import type { Serve } from '../clients/client.ts'
import { type GatewaySharing, SimulatedGateway } from '../gateway.ts'
import type { Fault, Scenario, StreamSpec } from '../scenario/scenario.ts'
import { FleetFairness } from './fleet-fairness.ts'
import { FleetLaws } from './fleet-laws.ts'
import type { GatewaysView, GatewayTally } from './gateways-view.ts'
import { PausableClock } from './pausable-clock.ts'
import { makeSharedBucket, type SharingWay } from './shared-budgets.ts'
import { SimulatedLeads } from './simulated-leads.ts'
import { SimulatedStore } from './simulated-store.ts'

/**
 * Several gateways over one fleet and one lease store: N platforms on one virtual clock, each with the slice book,
 * renewals and room exchange that run live. Clients choose a gateway as the scenario says; a load balancer sends those of
 * a gateway that is down to another. Faults strike gateways, the store and the network between them.
 */
export interface SharedWorldParts {
  readonly clock: VirtualClock
  readonly seed: number
  readonly scenario: Scenario
  readonly region: string
  readonly tenants: readonly Tenant[]
  /** Orgs with a weight of their own: their tenants have no share but within it. */
  readonly weighedOrgs: ReadonlySet<string>
  readonly sequencesMaxOf: (replicaId: string) => number
  readonly kvTokensMaxOf: (replicaId: string) => number
  /** Turns are given by shares: L7 holds. */
  readonly isFair: boolean
  readonly makePlatform: (gateway: number, own: GatewayParts) => Platform
  readonly backends: Backends
  /** The process of a gateway is lost. */
  readonly onLost: (processId: string) => void
}

/** What one gateway's platform is made with. */
export interface GatewayParts {
  readonly clock: PausableClock
  readonly backends: Backends
  readonly budgetParts: BudgetParts
  readonly slices: SliceFetcher
  readonly leadership: Leadership
  readonly seconds: SharedSecondStore
  readonly name: string
}

type GatewaysSpec = NonNullable<Scenario['gateways']>

export class SharedWorld {
  readonly gateways: readonly SimulatedGateway[]
  readonly laws: FleetLaws
  readonly #fairness: FleetFairness
  readonly #parts: SharedWorldParts
  readonly #spec: GatewaysSpec
  readonly #way: SharingWay
  readonly #store: SimulatedStore
  readonly #names: readonly string[]
  readonly #clocks: readonly PausableClock[]
  readonly #lives: number[]
  readonly #tallies: readonly GatewayTally[]
  readonly #choice: Rng
  readonly #leads: SimulatedLeads

  constructor(parts: SharedWorldParts, spec: GatewaysSpec) {
    const { clock, seed, scenario } = parts
    this.#parts = parts
    this.#spec = spec
    this.#way = spec.way ?? 'leased'
    this.#choice = Rng.stream(seed, 'gateway choice')
    this.#leads = new SimulatedLeads(clock)
    this.#store = new SimulatedStore(clock, seed, {
      delayUsMax: msToUs(spec.delayMs ?? 1),
      lossRatio: spec.lossRatio ?? 0,
      lateRatio: spec.lateRatio ?? 0,
    })
    this.#names = Array.from({ length: spec.count }, (_, i) => gatewayName(i))
    this.#clocks = this.#names.map(() => new PausableClock(clock))
    this.#lives = this.#names.map(() => 0)
    this.#tallies = this.#names.map(() => ({ arrived: 0, completed: 0, shed: 0, granted: 0 }))
    this.laws = new FleetLaws({
      ...parts,
      kvTokensAt: (replicaId) => this.#sumOver((i) => this.#heldAt(i, replicaId).leasedKvTokens),
      heldBy: (gateway, replicaId) => this.#heldAt(this.#names.indexOf(gateway), replicaId).held,
      ...allowedBy(scenario.faults ?? [], spec),
      isChecked: this.#way === 'leased',
    })
    this.#fairness = new FleetFairness({
      gatewayCount: spec.count,
      reportAgeS: reportAgeS(scenario.faults ?? [], spec),
      ...sharesOf(parts),
    })
    this.gateways = this.#names.map((_, i) => new SimulatedGateway(parts.region, clock, () => this.#makeProcess(i)))
  }

  /** Hears every journal entry of one gateway. */
  take(entry: Entry, gateway: string): void {
    this.laws.take(entry, gateway)
    this.#fairness.take(entry)
    const tally = this.#tallies[this.#names.indexOf(gateway)]
    if (tally === undefined || entry.at < secondsToUs(this.#parts.scenario.warmupS ?? 0)) return
    if (entry.kind === 'arrived') tally.arrived++
    else if (entry.kind === 'granted') tally.granted++
    else if (entry.kind === 'settled' && entry.outcome === 'completed') tally.completed++
    else if (entry.kind === 'settled' && ['rejected', 'expired', 'evicted'].includes(entry.outcome)) tally.shed++
  }

  /** Laws that only the whole run can show, and those that were broken on the way. */
  broken(): ReadonlyArray<{ readonly law: 'L2' | 'L4' | 'L7'; readonly ticketId: string; readonly what: string }> {
    const worst = this.#fairness.figures()
    if (this.#way !== 'leased' || !this.#parts.isFair || worst === undefined || worst.ofBound <= 1)
      return this.laws.broken
    const { pair, apart, bound } = worst
    const what = `${pair.replace('\n', ' and ')} both waited, and were served ${Math.round(apart)} apart per weight, and the bound is ${Math.round(bound)}`
    return [...this.laws.broken, { law: 'L7', ticketId: '', what }]
  }

  view(endAt: Instant): GatewaysView {
    const fairness = this.#fairness.figures()
    return {
      count: this.#spec.count,
      way: this.#way,
      inFlightOfLimit: this.laws.inFlightOfLimit,
      kvOfLimit: this.laws.kvOfLimit,
      budgets: this.laws.budgets(endAt),
      ...(fairness && { fairness: { ofBound: fairness.ofBound, apart: fairness.apart, bound: fairness.bound } }),
      byName: Object.fromEntries(this.#names.map((name, i) => [name, { ...(this.#tallies[i] as GatewayTally) }])),
      storeCalls: this.#store.callCount,
      storeCallsLost: this.#store.lostCount,
    }
  }

  /** How one stream's clients reach a gateway. */
  serveOf(spec: StreamSpec, tenantId: string): Serve {
    const shares = this.#sharesFor(spec, tenantId)
    return async (request, cancellation, sink): Promise<Settled> => {
      const i = this.#choose(shares)
      await this.#clocks[i]?.running()
      return serveRequest((this.gateways[i] as SimulatedGateway).platform, request, cancellation, sink)
    }
  }

  /** Starts and ends the faults of gateways and of the store. */
  schedule(startAt: Instant, faults: readonly Fault[]): void {
    const { clock } = this.#parts
    for (const fault of faults) {
      const fromAt = startAt + secondsToUs(fault.atS)
      const untilAt = fromAt + secondsToUs(fault.forS)
      clock.at(fromAt, () => this.#strike(fault, untilAt))
      clock.at(untilAt, () => this.#end(fault))
    }
  }

  #makeProcess(i: number): { platform: Platform; sharing: GatewaySharing } {
    const { backends } = this.#parts
    const clock = this.#clocks[i] as PausableClock
    const name = this.#names[i] as string
    const id = `${name}.${++this.#lives[i]!}`
    const { ttlMs } = SHARING_DEFAULTS
    const terms = { ttlMs, forgetMs: 1_000 * (this.#spec.forgetS ?? SHARING_DEFAULTS.forgetMs / 1_000) }
    const book = new SliceBook(clock.now(), id, { ...terms, shardCount: SHARD_COUNT, gatewaysMax: this.#spec.count })
    const port = this.#store.portOf({
      name,
      get pausedUntil() {
        return clock.pausedUntil
      },
    })
    const permits = new PermitBook(clock.now(), id, book.options)
    const renewals = new Renewals(clock, port, book, permits)
    const platform = this.#parts.makePlatform(i, {
      clock,
      backends: backendsOf(i, backends, clock),
      budgetParts: {
        makeBucket: makeSharedBucket(this.#way, book, this.#spec.count),
        makePermits: (now, permitName, limit) => permits.permits(now, permitName, limit),
      },
      slices: renewals,
      leadership: this.#leads.of(id, () => this.#isFit(i, id)),
      seconds: { store: this.#leads.seconds, reporterId: id },
      name,
    })
    const rooms = new RoomExchange(platform, port, id, { ...terms, gatewaysMax: this.#spec.count, way: this.#way })
    return { platform, sharing: this.#sharingOf(id, platform, renewals, rooms) }
  }

  #sharingOf(id: string, platform: Platform, renewals: Renewals, rooms: RoomExchange): GatewaySharing {
    const { clock } = this.#parts
    const { leaveS } = this.#spec
    const end = (): void => {
      rooms.stop()
      renewals.abandon()
    }
    // Tickets that still wait need their room until the last has ended.
    const endWhenIdle = (): void => {
      if (platform.liveCount === 0) end()
      else clock.at(clock.now() + secondsToUs(1), endWhenIdle)
    }
    return {
      start: () => {
        if (this.#way !== 'static') void renewals.start()
        void rooms.start()
      },
      lose: () => {
        this.#parts.onLost(id)
        platform.costs.abandon()
        end()
        if (leaveS !== undefined) clock.at(clock.now() + secondsToUs(leaveS), () => this.#store.leave(id))
      },
      stop: endWhenIdle,
    }
  }

  #strike({ kind, target, stepS = 0 }: Fault, untilAt: Instant): void {
    if (kind === 'lease-store-stop') this.#store.stopUntil(untilAt)
    if (kind === 'lease-store-wipe') this.#store.wipe()
    if (kind === 'lease-store-clock') this.#store.stepClock(secondsToUs(stepS))
    for (const [i, name] of this.#named(target)) {
      if (kind === 'gateway-loss') this.gateways[i]?.lose()
      if (kind === 'gateway-pause') this.#clocks[i]?.pauseUntil(untilAt)
      if (kind === 'gateway-cut') this.#store.cut(name, true)
      if (kind === 'gateway-deaf') this.#store.deafen(name, true)
    }
  }

  #end({ kind, target }: Fault): void {
    for (const [i, name] of this.#named(target)) {
      if (kind === 'gateway-loss') this.gateways[i]?.recover()
      if (kind === 'gateway-cut') this.#store.cut(name, false)
      if (kind === 'gateway-deaf') this.#store.deafen(name, false)
    }
  }

  #named(target: string): Array<[number, string]> {
    return [...this.#names.entries()].filter(([, name]) => target === '*' || name === target)
  }

  #sharesFor({ gateways }: StreamSpec, tenantId: string): readonly number[] {
    const { count, shares, homes } = this.#spec
    const usual = Array.from({ length: count }, (_, i) => shares?.[i] ?? 1)
    if (gateways !== undefined) return usual.map((share, i) => (gateways.includes(i + 1) ? share : 0))
    if (homes !== true) return usual
    const rng = Rng.stream(this.#parts.seed, `homes of ${tenantId}`)
    const drawn = usual.map((share) => (rng.below(2) === 0 ? share : 0))
    if (drawn.some((share) => share > 0)) return drawn
    const only = rng.below(count)
    return usual.map((share, i) => (i === only ? share : 0))
  }

  #choose(shares: readonly number[]): number {
    const up = shares.map((share, i) => (this.gateways[i]?.isUp === true ? share : 0))
    // A load balancer finds another gateway for clients of those that are down.
    const usable = up.some((share) => share > 0) ? up : this.gateways.map(({ isUp }) => (isUp ? 1 : 0))
    let drawn = this.#choice.next() * usable.reduce((sum, share) => sum + share, 0)
    for (const [i, share] of usable.entries()) {
      if (drawn < share) return i
      drawn -= share
    }
    return Math.max(0, usable.length - 1)
  }

  /** The process lives, and has something to do yet. */
  #isFit(i: number, id: string): boolean {
    const gateway = this.gateways[i]
    return id === `${this.#names[i]}.${this.#lives[i]}` && gateway?.isUp === true && !gateway.platform.costs.isDone
  }

  #heldAt(i: number, replicaId: string): { readonly held: number; readonly leasedKvTokens: number } {
    return this.gateways[i]?.platform.policies.dispatcher.leasedAt(replicaId) ?? NOTHING_HELD
  }

  #sumOver(of: (i: number) => number): number {
    return this.#names.reduce((sum, _, i) => sum + of(i), 0)
  }
}

const NOTHING_HELD = { held: 0, leasedKvTokens: 0 }

/** Fewer than live, because a simulation has few tenants and every shard beats. */
const SHARD_COUNT = 4

/** As many as a scenario may have. */
const GATEWAYS_MAX = 64

const gatewayName = (i: number): string => `gateway-${i + 1}`

export const gatewayNamesOf = ({ gateways }: Scenario): string[] =>
  gateways === undefined ? [] : Array.from({ length: gateways.count }, (_, i) => gatewayName(i))

/** Engines tell the leases of gateways apart, and a gateway that is paused starts no turn. */
const backendsOf = (gateway: number, backends: Backends, clock: PausableClock): Backends => ({
  of(replica) {
    const backend = backends.of(replica)
    const apart = (lease: Lease): Lease => ({ ...lease, id: lease.id * GATEWAYS_MAX + gateway })
    return {
      async generate(call) {
        await clock.running()
        return backend.generate({ ...call, lease: apart(call.lease) })
      },
      ...(backend.engineTimeOf && { engineTimeOf: (lease: Lease) => backend.engineTimeOf?.(apart(lease)) }),
      probe: (which) => backend.probe(which),
    }
  },
})

export const SHARED_FAULTS: readonly Fault['kind'][] = [
  'gateway-loss',
  'gateway-pause',
  'gateway-cut',
  'gateway-deaf',
  'lease-store-stop',
  'lease-store-wipe',
  'lease-store-clock',
]

const AWAY: readonly Fault['kind'][] = ['gateway-pause', 'gateway-cut', 'gateway-deaf']

/** How old may be what gateways know of each other: two exchanges and their way, and while something keeps it from them. */
function reportAgeS(faults: readonly Fault[], { delayMs = 1, lossRatio = 0, lateRatio = 0 }: GatewaysSpec): number {
  const ttlS = SHARING_DEFAULTS.ttlMs / 1_000
  const usual = 0.2 + (2 * delayMs) / 1_000 + (lossRatio + lateRatio > 0 ? LATE_S : 0)
  return faults.reduce((sum, { kind, forS }) => (SHARED_FAULTS.includes(kind) ? sum + ttlS + forS : sum), usual)
}

/** An answer that is lost or late is given up after two seconds, and carried out up to three seconds late. */
const LATE_S = 3

/** Tenants have shares beside those of the same org; one that is alone in an org without a weight, beside all such. */
function sharesOf({ tenants, weighedOrgs }: SharedWorldParts) {
  const byId = new Map(tenants.map((tenant) => [tenant.id, tenant]))
  const counts = new Map<string, number>()
  for (const { orgId } of tenants) counts.set(orgId, (counts.get(orgId) ?? 0) + 1)
  return {
    weightOf: (id: string) => byId.get(id)?.weight ?? 1,
    groupOf(id: string): string {
      const orgId = byId.get(id)?.orgId ?? ''
      return weighedOrgs.has(orgId) || (counts.get(orgId) ?? 0) > 1 ? `org ${orgId}` : ''
    },
  }
}

/** What the scenario's faults may add to a budget: (k/N + c)·ttl, silences beyond `forgetMs`, and j·S. */
function allowedBy(faults: readonly Fault[], spec: GatewaysSpec): { awayS: number; joinedRatio: number } {
  const ttlS = SHARING_DEFAULTS.ttlMs / 1_000
  const forgetS = spec.forgetS ?? SHARING_DEFAULTS.forgetMs / 1_000
  let [awayS, joined] = [0, 0]
  for (const { kind, target, forS, stepS = 0 } of faults) {
    const part = target === '*' || kind === 'lease-store-stop' ? 1 : 1 / spec.count
    if (AWAY.includes(kind) || kind === 'lease-store-stop') awayS += part * (ttlS + Math.max(0, forS - forgetS))
    if (kind === 'lease-store-clock' && stepS > 0) awayS += ttlS
    if (kind === 'gateway-loss') joined += target === '*' ? spec.count : 1
  }
  return { awayS, joinedRatio: joined / (2 * spec.count) }
}
