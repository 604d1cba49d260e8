import { ChurningMap } from '../../base/churning-map.ts'
import { type CancelTimer, type Clock, type Instant, US_PER_S } from '../../base/clock.ts'
import { type EngineTime, NO_ENGINE_TIME, spentUs } from '../../domain/engine-time.ts'
import type { Replica } from '../../domain/fleet.ts'
import type { IdlePolicy, IdleSharer } from '../../policy/cost/idle-sharing.ts'
import { secondOf } from '../../policy/cost/second-closer.ts'
import type { AttemptSecond, ReplicaSecond, TicketEnd, WastedAttempt } from '../../policy/cost/second-report.ts'
import { ReplicaSeen, SeenAttempt } from '../../policy/cost/seen-work.ts'
import { TicketAccounts } from '../../policy/cost/ticket-accounts.ts'
import type { Books } from '../ledger-ports.ts'
import type { Policies } from '../policies.ts'
import type { Backend, Backends, Ending, Journal, Leadership, SharedSecondStore } from '../ports.ts'
import type { Attempt, Ticket } from '../ticket.ts'
import { OwnSeconds } from './own-seconds.ts'
import type { SecondsDesk } from './seconds-desk.ts'
import { SharedSeconds } from './shared-seconds.ts'
import { stepPricesOf } from './step-prices.ts'
import { ticketCostOf } from './ticket-cost.ts'

/**
 * What do this gateway's attempts take of each replica's time, second by second?
 *
 *     turn ──▶ first token ──▶ … ──▶ end           every second: each running attempt is asked what it took since the
 *      │            │                 │             last look; the rows of all replicas are one report
 *      └── an engine that says its times is asked; of any other they are estimated (`policy/cost/seen-work.ts`)
 *
 * The report goes to the owner of the second (`policy/cost/second-closer.ts`): in this process where it is the only gateway
 * (`own-seconds.ts`), else the leader of the cell (`shared-seconds.ts`). What is closed goes to the journal: `second-closed`
 * at the owner, and `cost-closed` at the gateway that has the ticket.
 *
 * The meter changes nothing that requests feel: it only reads. Bounds: one record for each attempt that runs or ended in
 * this second, and for each replica. A second that a busy process missed is reported with the next, in equal parts.
 */
export interface CostMeterOptions {
  readonly clock: Clock
  readonly journal: Journal
  readonly books: Pick<Books, 'costed'>
  readonly backends: Backends
  readonly policies: Policies
  readonly idle: IdlePolicy
  /** All tenants with their weights, for idle time that is paid by weight. */
  readonly weights: readonly IdleSharer[]
  readonly isAnythingLive: () => boolean
  readonly leadership: Leadership
  /** Where gateways that share replicas tell their seconds; absent where this gateway is the only one. */
  readonly seconds?: SharedSecondStore
}

interface OpenAttempt {
  readonly attempt: Attempt
  /** The engine that says its times. */
  readonly backend: Backend | undefined
  readonly seen: SeenAttempt | undefined
  readonly meter: ReplicaMeter
  told: EngineTime
}

interface ReplicaMeter {
  readonly replica: Replica
  readonly seen: ReplicaSeen | undefined
  readonly open: Set<OpenAttempt>
  rows: AttemptSecond[]
  busyUs: number
}

/** The name of the only gateway. */
const ALONE = 'this gateway'

export class CostMeter {
  readonly #options: CostMeterOptions
  readonly #accounts: TicketAccounts
  readonly #desk: SecondsDesk
  readonly #reporterId: string
  readonly #replicas = new Map<string, ReplicaMeter>()
  readonly #open = new ChurningMap<Attempt, OpenAttempt>()
  #wasted: WastedAttempt[] = []
  #ended: TicketEnd[] = []
  #reportedUpTo: number
  /** From `start` to `finish`: a platform whose control loop does not run keeps no books. */
  #isRunning = false
  #isStopping = false
  #isAnythingLive: () => boolean
  #cancelTimer: CancelTimer | undefined

  constructor(options: CostMeterOptions) {
    const { clock, journal, books, seconds } = options
    this.#options = options
    this.#reporterId = seconds?.reporterId ?? ALONE
    const accounts = new TicketAccounts({
      onTicket: (closed) => {
        journal.record(closed)
        books.costed(closed.ticketId, ticketCostOf(closed))
      },
    })
    this.#accounts = accounts
    this.#desk =
      seconds === undefined
        ? new OwnSeconds(clock.now(), ALONE, journal, accounts, options)
        : new SharedSeconds({ ...options, ...seconds }, accounts, options)
    this.#reportedUpTo = secondOf(clock.now()) - 1
    this.#isAnythingLive = options.isAnythingLive
  }

  /** From here on the fleet's replicas are billed, and every second is closed when it is over. */
  start(): void {
    this.#isRunning = true
    this.#desk.start(this.#options.clock.now())
    this.#schedule()
  }

  /** Goes on until the last ticket has ended, here or wherever one may still come from, and then closes the books. */
  stop(isAnythingLive = this.#options.isAnythingLive): void {
    this.#isAnythingLive = isAnythingLive
    this.#isStopping = true
    if (!isAnythingLive()) this.finish()
  }

  /** Closes everything up to now, also the second that runs. */
  finish(): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    this.#cancelTimer?.()
    const now = this.#options.clock.now()
    this.#look(now, secondOf(now) + 1)
    this.#desk.finish(now)
  }

  /** The process is gone, with all that it knew. */
  abandon(): void {
    this.#isRunning = false
    this.#cancelTimer?.()
    this.#desk.abandon()
  }

  /** After the end: all that was handed in is closed, or nothing more is waited for. */
  whenDone(): Promise<void> {
    return this.#desk.whenDone()
  }

  get isDone(): boolean {
    return this.#desk.isDone
  }

  view(): ReturnType<SecondsDesk['view']> & { readonly openTickets: number } {
    return { openTickets: this.#accounts.size, ...this.#desk.view() }
  }

  /** The attempt has its turn, and its engine may begin. */
  began(attempt: Attempt): void {
    if (!this.#isRunning) return
    const { lease, ticket, plan } = attempt
    const { replica } = lease
    const pool = this.#options.policies.poolsById.get(replica.poolId)
    // Another region's gateway bills its own replicas.
    if (pool === undefined || pool.pool.isPeer === true) return
    const now = this.#options.clock.now()
    const backend = this.#options.backends.of(replica)
    const isMeasured = pool.twins === undefined && backend.engineTimeOf !== undefined
    const meter = this.#meterOf(now, this.#options.policies.fleet.standsFor(replica), isMeasured)
    const { promptTokens, cachedTokens } = plan.estimate
    const seen =
      meter.seen &&
      new SeenAttempt(now, meter.seen, {
        sequences: ticket.request.choiceCount,
        promptTokens,
        cachedTokens,
        firstTokenUs: attempt.isTelling ? undefined : attempt.firstTokenExpectedUs,
      })
    const open = { attempt, backend: isMeasured ? backend : undefined, seen, meter, told: NO_ENGINE_TIME }
    meter.open.add(open)
    this.#open.set(attempt, open)
  }

  /** The attempt's first token has come. */
  begun(attempt: Attempt, firstTokenAt: Instant): void {
    this.#open.get(attempt)?.seen?.begun(firstTokenAt)
  }

  over(attempt: Attempt, ending: Ending): void {
    const open = this.#open.get(attempt)
    if (open === undefined) return
    this.#open.delete(attempt)
    const { meter } = open
    meter.open.delete(open)
    const row = rowOf(open, this.#spent(this.#options.clock.now(), open, ending))
    if (row !== undefined) meter.rows.push(row)
    if (!attempt.isPaid && attempt.ticket.request.errand === undefined)
      this.#wasted.push({ ticketId: attempt.ticket.id, attempt: attempt.nth })
  }

  /** A ticket that had a turn has ended. */
  settled({ id, request, attempts }: Ticket): void {
    if (attempts === 0 || !this.#isRunning) return
    this.#ended.push({ ticketId: id, tenantId: request.tenant.id, isErrand: request.errand !== undefined })
  }

  #meterOf(now: Instant, replica: Replica, isMeasured: boolean): ReplicaMeter {
    const known = this.#replicas.get(replica.id)
    if (known !== undefined) return known
    const seen = isMeasured ? undefined : new ReplicaSeen(now)
    const meter = { replica, seen, open: new Set<OpenAttempt>(), rows: [], busyUs: 0 }
    this.#replicas.set(replica.id, meter)
    this.#learn(now, meter)
    return meter
  }

  /** What an attempt took since the last look. */
  #spent(now: Instant, open: OpenAttempt, ending: Ending | undefined): EngineTime {
    const { attempt, backend, seen } = open
    if (backend !== undefined) {
      const time = ending?.engineTime ?? backend.engineTimeOf?.(attempt.lease) ?? open.told
      const since = difference(time, open.told)
      open.told = time
      return since
    }
    const { firstTokenAt, lastTokenAt, outputTokens } = attempt.ticket
    const usage = ending?.kind === 'finished' ? ending.usage : undefined
    const progress = {
      firstTokenAt,
      lastTokenAt,
      outputTokens: usage?.outputTokens ?? outputTokens,
      isOver: ending !== undefined,
      usage,
    }
    return seen?.look(now, progress) ?? NO_ENGINE_TIME
  }

  readonly #tick = (): void => {
    const now = this.#options.clock.now()
    this.#look(now, secondOf(now))
    this.#desk.tick(now)
    if (this.#isStopping && !this.#isAnythingLive()) this.finish()
    else this.#schedule()
  }

  #schedule(): void {
    const { clock } = this.#options
    this.#cancelTimer = clock.at((secondOf(clock.now()) + 1) * US_PER_S, this.#tick)
  }

  /** Reports every second before `until` that was not reported yet. */
  #look(now: Instant, until: number): void {
    const count = until - 1 - this.#reportedUpTo
    if (count <= 0) return
    const replicas: ReplicaSecond[] = []
    for (const meter of this.#replicas.values()) {
      const second = this.#lookAt(now, meter, count)
      if (second !== undefined) replicas.push(second)
    }
    for (let second = this.#reportedUpTo + 1; second < until; second++) {
      const isLast = second === until - 1
      const wasted = isLast ? this.#wasted : []
      const ended = isLast ? this.#ended : []
      this.#desk.report(now, { reporterId: this.#reporterId, second, replicas, wasted, ended })
    }
    this.#wasted = []
    this.#ended = []
    this.#reportedUpTo = until - 1
  }

  #lookAt(now: Instant, meter: ReplicaMeter, count: number): ReplicaSecond | undefined {
    const { replica, seen, open } = meter
    const rows = meter.rows
    meter.rows = []
    for (const one of open) {
      const row = rowOf(one, this.#spent(now, one, undefined))
      if (row !== undefined) rows.push(row)
    }
    if (seen !== undefined) this.#learn(now, meter)
    const busyUs = seen === undefined ? 0 : seen.busyUs - meter.busyUs
    meter.busyUs = seen?.busyUs ?? 0
    if (rows.length === 0 && busyUs === 0) {
      if (open.size === 0 && this.#options.policies.fleet.replica(replica.id) !== replica)
        this.#replicas.delete(replica.id)
      return undefined
    }
    const parts = count === 1 ? rows : rows.map((row) => ({ ...row, time: scaled(row.time, 1 / count) }))
    return { replicaId: replica.id, isMeasured: seen === undefined, busyUs: busyUs / count, rows: parts }
  }

  #learn(now: Instant, { replica, seen }: ReplicaMeter): void {
    if (seen === undefined) return
    const { poolsById, dispatcher } = this.#options.policies
    const load = dispatcher.loadOf(replica.id)
    const foreign = load === undefined ? 0 : Math.max(0, load.sequences - seen.held)
    seen.learn(now, stepPricesOf(poolsById.get(replica.poolId), replica, load), foreign)
  }
}

function rowOf({ attempt }: OpenAttempt, time: EngineTime): AttemptSecond | undefined {
  if (spentUs(time) <= 0) return undefined
  const { id, request } = attempt.ticket
  const isErrand = request.errand !== undefined
  return { ticketId: id, attempt: attempt.nth, tenantId: request.tenant.id, isErrand, time }
}

/** Sums only grow; what rounding takes away from one of them is not given back. */
function difference(a: EngineTime, b: EngineTime): EngineTime {
  return {
    prefillUs: Math.max(0, a.prefillUs - b.prefillUs),
    decodeUs: Math.max(0, a.decodeUs - b.decodeUs),
    againUs: Math.max(0, a.againUs - b.againUs),
    aloneUs: Math.max(0, a.aloneUs - b.aloneUs),
    prefixSavedUs: Math.max(0, a.prefixSavedUs - b.prefixSavedUs),
    kvTokenUs: Math.max(0, a.kvTokenUs - b.kvTokenUs),
  }
}

function scaled(time: EngineTime, factor: number): EngineTime {
  return {
    prefillUs: factor * time.prefillUs,
    decodeUs: factor * time.decodeUs,
    againUs: factor * time.againUs,
    aloneUs: factor * time.aloneUs,
    prefixSavedUs: factor * time.prefixSavedUs,
    kvTokenUs: factor * time.kvTokenUs,
  }
}
