import { ChurningMap } from '../../base/churning-map.ts'
import type { Instant } from '../../base/clock.ts'
import type { Entry, Settled } from '../../domain/entry.ts'
import type { Tenant } from '../../domain/tenant.ts'
import { servedCost } from '../../policy/planning/cost.ts'
import { CostTally } from './cost-tally.ts'
import { RetrievalTally } from './retrieval-tally.ts'
import { ReturnsTally } from './returns-tally.ts'
import { RolloutTally } from './rollout-tally.ts'
import { ScreenTally } from './screen-tally.ts'
import { StatsSheet } from './stats-sheet.ts'
import { Windows } from './windows.ts'

/**
 * Subscribes to a journal and keeps sums, never tickets, so that memory does not grow with the length of a run. Live
 * and simulated runs have the same collector, so their reports can be compared.
 */
export interface CollectorOptions {
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly startAt: Instant
  /** Tickets that arrive earlier are not counted, except in the windows. */
  readonly warmUntil: Instant
  readonly windowUs: number
  readonly outputWeight: number
  /** Stretches of time with their own figures, by name. */
  readonly parts: ReadonlyMap<string, { readonly fromAt: Instant; readonly toAt: Instant }>
  /** Whether a ticket should be blocked; absent where nobody knows. */
  readonly isHarmful?: (ticketId: string) => boolean
}

/** A stretch of the run: the tickets that arrived in it, and what happened in it. */
export interface Part {
  readonly fromAt: Instant
  readonly toAt: Instant
  readonly sheet: StatsSheet
  readonly retrieval: RetrievalTally
  readonly screens: ScreenTally
  rungChanges: number
}

/** Time in which a tenant's tickets waited: a tenant that is always backlogged has a claim to its share. */
class Backlogged {
  readonly #fromAt: Instant
  #waiting = 0
  #sinceAt = 0
  #totalUs = 0

  constructor(fromAt: Instant) {
    this.#fromAt = fromAt
  }

  change(at: Instant, by: 1 | -1): void {
    if (this.#waiting === 0 && by === 1) this.#sinceAt = Math.max(this.#fromAt, at)
    this.#waiting += by
    if (this.#waiting === 0) this.#totalUs += Math.max(0, at - this.#sinceAt)
  }

  upTo(at: Instant): number {
    return this.#totalUs + (this.#waiting > 0 ? Math.max(0, at - this.#sinceAt) : 0)
  }
}

interface Dwelling {
  rung: string
  sinceAt: Instant
}

export class Collector {
  readonly name = 'collector'
  readonly options: CollectorOptions
  readonly whole = new StatsSheet()
  readonly parts: ReadonlyMap<string, Part>
  readonly windows: Windows
  readonly rollouts = new RolloutTally()
  readonly retrieval = new RetrievalTally()
  readonly returns = new ReturnsTally()
  readonly screens: ScreenTally
  readonly costs: CostTally
  readonly #waiting = new ChurningMap<string, string>()
  readonly #backlogged = new Map<string, Backlogged>()
  readonly #dwellings = new Map<string, Dwelling>()
  readonly #rungUs = new Map<string, number>()
  readonly #degradedSince = new Map<string, Instant>()
  readonly #shedInFull = new Map<string, number>()
  rungChanges = 0
  faults = 0
  prediction = { observed: 0, falseAdmits: 0, falseRejects: 0, rightRejects: 0 }
  queuedMax = 0
  readonly #rejects = new Map<string, { falseRejects: number; rightRejects: number }>()
  readonly #judged = new Map<string, { observedCount: number; falseAdmits: number }>()

  constructor(options: CollectorOptions) {
    this.options = options
    this.windows = new Windows(options.windowUs)
    this.screens = new ScreenTally(options.isHarmful)
    this.costs = new CostTally(options.warmUntil)
    this.parts = new Map(
      [...options.parts].map(([name, bounds]) => [
        name,
        {
          ...bounds,
          sheet: new StatsSheet(),
          retrieval: new RetrievalTally(),
          screens: new ScreenTally(options.isHarmful),
          rungChanges: 0,
        },
      ]),
    )
  }

  /** `from` names the gateway, where several share one fleet. */
  take(entry: Entry, from = ''): void {
    this.rollouts.take(entry)
    this.costs.take(entry)
    if (entry.at >= this.options.warmUntil) this.returns.take(entry)
    if (SCREEN_KINDS.has(entry.kind)) this.#screened(entry)
    if (entry.kind === 'retrieval-ended' || entry.kind === 'answer-looked-up') this.#retrieved(entry)
    switch (entry.kind) {
      case 'arrived':
        // The platform's own errands are not part of the workload.
        if (this.options.tenants.has(entry.tenantId)) this.windows.arrived(entry.at - this.options.startAt)
        return
      case 'admitted':
        this.#waiting.set(entry.ticketId, entry.tenantId)
        if (entry.rung !== 'full' && !this.#degradedSince.has(entry.tenantId)) {
          this.#degradedSince.set(entry.tenantId, entry.at)
        }
        this.#backlogOf(entry.tenantId).change(entry.at, 1)
        return
      case 'granted':
        this.#leave(entry.at, entry.ticketId)
        return
      case 'settled':
        this.#settled(entry)
        return
      case 'rung-changed':
        this.#rungChanged(entry)
        return
      case 'pool-reported':
        this.#pooled(entry, from)
        return
      case 'fault-seen':
        this.faults++
        return
      default:
    }
  }

  /** Share of the counted time in which the tenant had tickets waiting. */
  backloggedRatio(tenantId: string, until: Instant): number {
    return (this.#backlogged.get(tenantId)?.upTo(until) ?? 0) / Math.max(1, until - this.options.warmUntil)
  }

  /** Tickets of the tenant that were shed before any of its tickets was served on a lower rung. */
  shedInFull(tenantId: string): number {
    return this.#shedInFull.get(tenantId) ?? 0
  }

  /** Seconds that tenants spent on each rung below full, summed over tenants and pools. */
  timeOnRung(until: Instant): Record<string, number> {
    const total = new Map(this.#rungUs)
    for (const { rung, sinceAt } of this.#dwellings.values()) total.set(rung, (total.get(rung) ?? 0) + until - sinceAt)
    total.delete('full')
    return Object.fromEntries([...total].map(([rung, us]) => [rung, us / 1_000_000]))
  }

  #settled(entry: Settled): void {
    this.#leave(entry.at, entry.ticketId)
    const tenant = this.options.tenants.get(entry.tenantId)
    if (tenant === undefined) return
    this.windows.settled(shifted(entry, this.options.startAt), tenant.slo)
    const cost = servedCost(entry.usage, this.options.outputWeight)
    for (const { fromAt, toAt, sheet } of this.parts.values()) {
      if (entry.arrivedAt >= fromAt && entry.arrivedAt < toAt) sheet.observe(entry, tenant.slo, cost)
    }
    if (entry.arrivedAt < this.options.warmUntil) return
    this.whole.observe(entry, tenant.slo, cost)
    if (isShed(entry) && !this.#degradedSince.has(entry.tenantId)) {
      this.#shedInFull.set(entry.tenantId, this.shedInFull(entry.tenantId) + 1)
    }
  }

  /** Verdicts count when they come; answers by when their request came, as everywhere. */
  #screened(entry: Entry): void {
    if (entry.kind === 'settled' && !this.options.tenants.has(entry.tenantId)) return
    const at = entry.kind === 'settled' ? entry.arrivedAt : entry.at
    if (at >= this.options.warmUntil) this.screens.take(entry)
    for (const { fromAt, toAt, screens } of this.parts.values()) if (at >= fromAt && at < toAt) screens.take(entry)
  }

  #retrieved(entry: Entry): void {
    if (entry.at >= this.options.warmUntil) this.retrieval.take(entry)
    for (const part of this.parts.values()) {
      if (entry.at >= part.fromAt && entry.at < part.toAt) part.retrieval.take(entry)
    }
  }

  #rungChanged(entry: Extract<Entry, { kind: 'rung-changed' }>): void {
    const name = `${entry.poolId}/${entry.tenantId}`
    const dwelling = this.#dwellings.get(name)
    if (dwelling !== undefined) {
      this.#rungUs.set(dwelling.rung, (this.#rungUs.get(dwelling.rung) ?? 0) + entry.at - dwelling.sinceAt)
    }
    this.#dwellings.set(name, { rung: entry.to, sinceAt: entry.at })
    this.rungChanges++
    for (const part of this.parts.values()) if (entry.at >= part.fromAt && entry.at < part.toAt) part.rungChanges++
  }

  #pooled(entry: Extract<Entry, { kind: 'pool-reported' }>, from: string): void {
    this.windows.reported({ ...entry, at: entry.at - this.options.startAt })
    this.queuedMax = Math.max(this.queuedMax, entry.queuedCount)
    this.#rejects.set(`${from}/${entry.poolId}`, entry)
    this.#judged.set(from, entry)
    let falseRejects = 0
    let rightRejects = 0
    for (const rejects of this.#rejects.values()) {
      falseRejects += rejects.falseRejects
      rightRejects += rejects.rightRejects
    }
    let observed = 0
    let falseAdmits = 0
    for (const judged of this.#judged.values()) {
      observed += judged.observedCount
      falseAdmits += judged.falseAdmits
    }
    this.prediction = { observed, falseAdmits, falseRejects, rightRejects }
  }

  #leave(at: Instant, ticketId: string): void {
    const tenantId = this.#waiting.get(ticketId)
    if (tenantId === undefined) return
    this.#waiting.delete(ticketId)
    this.#backlogOf(tenantId).change(at, -1)
  }

  #backlogOf(tenantId: string): Backlogged {
    let backlogged = this.#backlogged.get(tenantId)
    if (backlogged === undefined) {
      backlogged = new Backlogged(this.options.warmUntil)
      this.#backlogged.set(tenantId, backlogged)
    }
    return backlogged
  }
}

const SCREEN_KINDS: ReadonlySet<Entry['kind']> = new Set(['screened', 'guard-answered', 'abuse-noticed', 'settled'])

const isShed = ({ outcome }: Settled): boolean =>
  outcome === 'rejected' || outcome === 'expired' || outcome === 'evicted'

/** Windows count from the start of the run. */
function shifted(entry: Settled, startAt: Instant): Settled {
  if (startAt === 0) return entry
  const back = (at: Instant | undefined): Instant | undefined => (at === undefined ? undefined : at - startAt)
  return {
    ...entry,
    at: entry.at - startAt,
    arrivedAt: entry.arrivedAt - startAt,
    admittedAt: back(entry.admittedAt),
    grantedAt: back(entry.grantedAt),
    firstTokenAt: back(entry.firstTokenAt),
    lastTokenAt: back(entry.lastTokenAt),
    deadlineAt: entry.deadlineAt - startAt,
  }
}
