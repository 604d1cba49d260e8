import type { Instant } from '../base/clock.ts'
import { US_PER_MS, US_PER_S } from '../base/clock.ts'
import { Ring } from '../base/ring.ts'
import type { Entry, PoolReported, Settled } from '../domain/entry.ts'
import type { WaitingKeys } from '../domain/share-path.ts'
import { type ConsoleQueue, queueOver } from './console-queue.ts'
import type { ConsoleEvent, ConsoleParty, ConsolePool, ConsoleReplica, ConsoleView } from './console-view.ts'
import { COUNTED, MinuteCounts } from './minute-counts.ts'
import { TrialCounts } from './trial-counts.ts'
import { Troubles } from './troubles.ts'

const PARTIES_MAX = 2_000
const SHOWN_MAX = 20
const REPLICAS_MAX = 1_000
const POOLS_SHOWN_MAX = 100
const REPLICAS_SHOWN_MAX = 200
const WAITING_SHOWN_MAX = 3
const EVENTS_PER_SECOND_MAX = 20
const EVENTS_KEPT = 200
const HISTORY_S = 3_600
const OTHERS = 'other'
const ALONE = { heard: 1, of: 1 }

/**
 * What is going on, for people: gathered from the journal, told once a second, and made once for all viewers.
 *
 * Its cost does not grow with tenants beyond a bound: parties beyond `PARTIES_MAX` are counted together, and a message
 * has the busiest of them and the rest. A party's own view is made for it alone, so that a tenant's browser never gets
 * another's figures (law L13).
 */
export class ConsoleFeed {
  readonly name = 'console'
  readonly #total = new MinuteCounts()
  readonly #tenants = new Map<string, MinuteCounts>()
  readonly #models = new Map<string, MinuteCounts>()
  readonly #pools = new Map<string, PoolReported>()
  readonly #shedding = new Set<string>()
  readonly #replicas = new Map<string, ConsoleReplica>()
  readonly #troubles = new Troubles()
  readonly #trials = new TrialCounts()
  readonly #history = new Ring<readonly number[]>(HISTORY_S)
  readonly #kept = new Ring<ConsoleEvent>(EVENTS_KEPT)
  #second = { at: 0, arrived: 0, completed: 0, refused: 0, broken: 0, events: 0 }
  #leftOut = 0
  #firstTokensMs: number[] = []
  #lastP95: number | undefined
  #eventId = 0

  take(entry: Entry): void {
    this.#turnTo(Math.floor(entry.at / US_PER_S))
    for (const text of this.#troubles.take(entry)) this.#tell(entry, text)
    switch (entry.kind) {
      case 'arrived':
        this.#second.arrived++
        for (const counts of this.#partiesOf(entry.tenantId, entry.model)) counts.add(entry.at, 'arrived')
        return
      case 'settled':
        this.#settled(entry)
        return
      case 'pool-reported':
        this.#pools.set(entry.poolId, entry)
        return
      case 'offline-shedding-changed':
        if (entry.isShed) this.#shedding.add(entry.poolId)
        else this.#shedding.delete(entry.poolId)
        this.#tell(entry, `${entry.poolId} ${entry.isShed ? 'refuses' : 'takes'} offline work: ${entry.because}`)
        return
      case 'replica-reported':
        this.#replica(entry.replicaId, { isReady: entry.isReady, because: entry.because })
        return
      case 'replica-health':
        this.#replica(entry.replicaId, { health: entry.health, because: entry.because })
        this.#tell(entry, `${entry.replicaId} is ${entry.health}: ${entry.because}`)
        return
      case 'fleet-changed':
        if (entry.what === 'replica-removed') this.#replicas.delete(entry.name)
        if (entry.what === 'pool-removed') this.#pools.delete(entry.name)
        this.#tell(entry, `${entry.what} ${entry.name} by ${entry.by}: ${entry.because}`)
        return
      case 'rung-changed':
        this.#tell(
          entry,
          `${entry.tenantId} at ${entry.poolId}: ${entry.from} → ${entry.to}, ${entry.because}`,
          entry.tenantId,
        )
        return
      case 'tenant-paused':
        this.#tell(
          entry,
          `${entry.tenantId} ${entry.isPaused ? 'is paused' : 'goes on'} by ${entry.by}: ${entry.because}`,
          entry.tenantId,
        )
        return
      case 'mode-changed':
        this.#tell(
          entry,
          `admission ${entry.mode === 'observe' ? 'observes only' : 'enforces its verdicts'} by ${entry.by}: ${entry.because}`,
        )
        return
      case 'rollout-changed':
        this.#tell(
          entry,
          `${entry.model}: ${entry.to} ${entry.change} at ${entry.percent} % by ${entry.by}: ${entry.because}`,
        )
        return
      case 'shadow-ended':
        this.#trials.shadow(entry)
        return
      case 'holdout-evaluated':
        this.#trials.holdout(entry)
        return
      default:
    }
  }

  /** Everything that a viewer should see who has seen events up to this one; 0 for one who comes now. */
  view(now: Instant, sinceEvent: number, tenantsMax: number = SHOWN_MAX): ConsoleView {
    const named = topOf(this.#tenants, now, tenantsMax)
    return {
      at: now / US_PER_MS,
      columns: COUNTED,
      total: this.#total.view(now),
      pools: [...this.#pools.values()].slice(0, POOLS_SHOWN_MAX).map((pool) => this.#pool(pool)),
      replicas: [...this.#replicas.values()].slice(0, REPLICAS_SHOWN_MAX),
      tenants: named,
      others: Math.max(0, this.#tenants.size - named.length),
      models: topOf(this.#models, now, SHOWN_MAX),
      queue: queueOver(Array.from(this.#pools.values(), ({ waiting }) => waiting)),
      troubles: this.#troubles.view(),
      trials: this.#trials.view(),
      firstTokenP95Ms: p95(this.#firstTokensMs) ?? this.#lastP95,
      second: this.#history.last,
      gateways: ALONE,
      events: this.eventsSince(sinceEvent),
      eventsLeftOut: this.#leftOut,
    }
  }

  /** Figures of one tenant, busy or not. */
  countsOf(now: Instant, tenantId: string): readonly number[] {
    return this.#tenants.get(tenantId)?.view(now) ?? COUNTED.map(() => 0)
  }

  /** The same for one tenant: its own figures, no pools, for these have others' work in them, its own refusals. */
  ofTenant(now: Instant, tenantId: string, sinceEvent = 0): ConsoleView {
    const counts = this.countsOf(now, tenantId)
    return {
      at: now / US_PER_MS,
      columns: COUNTED,
      total: counts,
      pools: [],
      replicas: [],
      tenants: [{ name: tenantId, counts }],
      others: 0,
      models: [],
      queue: this.#queueOf(tenantId),
      troubles: [],
      trials: [],
      firstTokenP95Ms: undefined,
      second: undefined,
      gateways: ALONE,
      events: this.eventsSince(sinceEvent).filter(({ tenant }) => tenant === tenantId),
      eventsLeftOut: 0,
    }
  }

  /** Events after this one, the oldest first. */
  eventsSince(id: number): readonly ConsoleEvent[] {
    return [...this.#kept].filter((event) => event.id > id)
  }

  /** The newest event's id. */
  get lastEvent(): number {
    return this.#eventId
  }

  /** Seconds of the last hour, the oldest first: time, arrived, completed, refused, broken, queued, pressure, p95. */
  history(): readonly (readonly number[])[] {
    return [...this.#history]
  }

  /** A tenant's own keys, as far as pools name them. What others have waiting is not told. */
  #queueOf(tenantId: string): ConsoleQueue {
    const { rows } = queueOver(Array.from(this.#pools.values(), ({ waiting }) => own(waiting, tenantId)))
    return { rows, rest: 0, restKeys: 0 }
  }

  #settled(entry: Settled): void {
    const { at, outcome, isKept, rung, usage } = entry
    const isRefused = outcome === 'rejected' || outcome === 'expired' || outcome === 'evicted' || outcome === 'blocked'
    if (outcome === 'completed') this.#second.completed++
    if (isRefused) this.#second.refused++
    if (isKept === false) this.#second.broken++
    for (const counts of this.#partiesOf(entry.tenantId, entry.model)) {
      if (outcome === 'completed') counts.add(at, 'completed')
      if (outcome === 'failed') counts.add(at, 'failed')
      if (isRefused) counts.add(at, 'refused')
      if (isKept !== undefined) counts.add(at, isKept ? 'kept' : 'broken')
      if (outcome === 'completed' && rung !== 'full') counts.add(at, 'degraded')
      counts.add(at, 'tokens', usage.promptTokens + usage.outputTokens)
    }
    // A bounded sample of a second is enough for its tail.
    if (entry.firstTokenAt !== undefined && this.#firstTokensMs.length < 1_000)
      this.#firstTokensMs.push((entry.firstTokenAt - entry.arrivedAt) / US_PER_MS)
    if (isRefused || outcome === 'failed') {
      const code = entry.refusal?.code ?? outcome
      this.#tell(entry, `${entry.tenantId} ${entry.model}: ${code}, ${entry.because}`, entry.tenantId, entry.ticketId)
    }
  }

  #tell(entry: Entry, text: string, tenant?: string, ticketId?: string): void {
    if (this.#second.events++ >= EVENTS_PER_SECOND_MAX) {
      this.#leftOut++
      return
    }
    const kind = entry.kind === 'settled' ? entry.outcome : entry.kind
    const event = { id: ++this.#eventId, at: entry.at / US_PER_MS, kind, tenant, text, ticketId }
    this.#kept.push(event)
  }

  #replica(id: string, change: Partial<ConsoleReplica>): void {
    const known = this.#replicas.get(id)
    if (known === undefined && this.#replicas.size >= REPLICAS_MAX) return
    this.#replicas.set(id, { health: 'steady', isReady: true, because: '', ...known, ...change, id })
  }

  #partiesOf(tenantId: string, model: string): MinuteCounts[] {
    return [this.#total, partyIn(this.#tenants, tenantId), partyIn(this.#models, model)]
  }

  /** Entries bring the time: a second is closed when one of a later second comes. Pools report in every second. */
  #turnTo(second: number): void {
    if (second <= this.#second.at) return
    if (this.#second.at > 0) this.#close()
    this.#second = { at: second, arrived: 0, completed: 0, refused: 0, broken: 0, events: 0 }
  }

  #close(): void {
    this.#lastP95 = p95(this.#firstTokensMs)
    this.#firstTokensMs = []
    let queued = 0
    let pressure = 0
    for (const pool of this.#pools.values()) {
      queued += pool.queuedCount
      pressure = Math.max(pressure, pool.pressure)
    }
    const { at, arrived, completed, refused, broken } = this.#second
    this.#history.push([at, arrived, completed, refused, broken, queued, rounded(pressure), this.#lastP95 ?? 0])
  }

  #pool(pool: PoolReported): ConsolePool {
    return {
      id: pool.poolId,
      queued: pool.queuedCount,
      held: pool.heldCount,
      ready: pool.readyReplicaCount,
      pressure: rounded(pool.pressure),
      isShedding: this.#shedding.has(pool.poolId),
      usdPerHour: pool.usdPerHour,
      waiting: (pool.backlogged ?? [])
        .slice(0, WAITING_SHOWN_MAX)
        .map(({ tenantId, share }) => [tenantId, rounded(share)] as const),
      waitingCount: pool.backlogged?.length ?? 0,
    }
  }
}

const own = (waiting: WaitingKeys | undefined, tenant: string): WaitingKeys | undefined =>
  waiting && { ...waiting, keys: waiting.keys.filter(({ tenantId }) => tenantId === tenant) }

function partyIn(parties: Map<string, MinuteCounts>, name: string): MinuteCounts {
  const known = parties.get(name)
  if (known !== undefined) return known
  const shown = parties.size < PARTIES_MAX ? name : OTHERS
  const other = parties.get(shown)
  if (other !== undefined) return other
  const made = new MinuteCounts()
  parties.set(shown, made)
  return made
}

/** Those with most requests in the last minute; who has had none is left out. */
function topOf(parties: ReadonlyMap<string, MinuteCounts>, now: Instant, countMax: number): ConsoleParty[] {
  const all = [...parties].map(([name, counts]) => ({ name, counts: counts.view(now) }))
  return all
    .filter(({ counts }) => counts.some((count) => count > 0))
    .sort((a, b) => (b.counts[0] as number) - (a.counts[0] as number) || (a.name < b.name ? -1 : 1))
    .slice(0, countMax)
}

function p95(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined
  const sorted = values.toSorted((a, b) => a - b)
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))] as number)
}

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000
