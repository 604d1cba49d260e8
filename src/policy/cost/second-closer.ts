import { assert } from '../../base/assert.ts'
import { ChurningMap } from '../../base/churning-map.ts'
import { type Instant, US_PER_S } from '../../base/clock.ts'
import type { CostClosed, SecondClosed, TenantSecond } from '../../domain/cost-entry.ts'
import { spentUs } from '../../domain/engine-time.ts'
import { type SplitRow, type SplitSecond, splitSecond } from './close-second.ts'
import { type IdleSharer, shareIdle } from './idle-sharing.ts'
import { nanoPerHourOf, ReplicaBill } from './replica-bill.ts'
import type { ReplicaSecond, SecondReport, TicketEnd, WastedAttempt } from './second-report.ts'
import { TicketAccount } from './ticket-account.ts'

/**
 * When is a second of the fleet final, and what did it cost whom?
 *
 * One owner closes each second, once, in order: as soon as every gateway has reported it, or CLOSE_US_MAX after its end.
 *
 *     second s runs ──▶ gateways report weights for s ──▶ s is closed ──▶ `second-closed` for every replica
 *                                                                         `cost-closed` for every ticket that ended in s
 *
 * What a gateway had not reported by then is guessed from its last report and has a line of its own: `late`, or
 * `crashed` if the gateway is known to be gone. A report that comes later changes no closed second; its tickets cost
 * nothing for it, and still end. An attempt that turns out to be for nothing is moved from its tenant to `waste` in the
 * second in which that is known: a credit and a debit of the same sum, so that closed seconds stay as they are.
 *
 * Law L15 is asserted for every second that is closed. Bounds: reports of a few seconds; accounts of tickets that live or
 * ended in these seconds, ACCOUNTS_MAX at most; the time of a ticket beyond them goes to `late`.
 * It has no clock: its owner calls `closeDue` once a second.
 */
export interface SecondCloserOptions {
  /** Who pays for a pool's idle time; an empty list is the platform. `used` is what each tenant used in the second. */
  readonly idleSharers: (poolId: string, used: ReadonlyMap<string, number>) => readonly IdleSharer[]
  readonly onSecond: (closed: SecondClosed) => void
  readonly onTicket: (closed: CostClosed) => void
  readonly accountsMax?: number
}

export interface BilledReplica {
  readonly id: string
  readonly poolId: string
  /** Undefined where no price is known: its seconds cost nothing, and its tickets say so. */
  readonly usdPerHour: number | undefined
}

/** Microseconds that a second waits for reports after its end. */
export const CLOSE_US_MAX = 3 * US_PER_S
/** Tickets in flight of all gateways, and those that ended in the last seconds. */
const ACCOUNTS_MAX = 131_072
/** Seconds for which reports are kept: those that wait to be closed, and one that a fast clock is ahead by. */
const SECONDS_KEPT_MAX = 8

interface WatchedReplica {
  readonly id: string
  readonly poolId: string
  readonly bill: ReplicaBill
  releasedAt: Instant | undefined
  /** By reporter: engine time in the last second that it reported here. */
  readonly lastUs: Map<string, number>
}

interface Reporter {
  reportedUpTo: number
  isGone: boolean
}

export class SecondCloser {
  readonly #options: SecondCloserOptions
  readonly #accountsMax: number
  readonly #replicas = new Map<string, WatchedReplica>()
  readonly #reporters = new Map<string, Reporter>()
  /** By second, reports that wait for its closing. */
  readonly #reports = new Map<number, SecondReport[]>()
  readonly #accounts = new ChurningMap<string, TicketAccount>()
  /** Tickets whose last report came after the closing. */
  #endedLate: TicketEnd[] = []
  #nextSecond: number
  #lateReports = 0

  constructor(now: Instant, options: SecondCloserOptions) {
    this.#options = options
    this.#accountsMax = options.accountsMax ?? ACCOUNTS_MAX
    this.#nextSecond = secondOf(now)
  }

  /** The first second that is not closed. */
  get nextSecond(): number {
    return this.#nextSecond
  }

  view(): { readonly openTickets: number; readonly pendingSeconds: number; readonly lateReports: number } {
    return { openTickets: this.#accounts.size, pendingSeconds: this.#reports.size, lateReports: this.#lateReports }
  }

  isWatched(replicaId: string): boolean {
    const known = this.#replicas.get(replicaId)
    return known !== undefined && known.releasedAt === undefined
  }

  watched(): IterableIterator<string> {
    return this.#replicas.keys()
  }

  /** The replica is there, and costs from now on. */
  watch(now: Instant, { id, poolId, usdPerHour }: BilledReplica): void {
    // A replica of the same name that was just released: its bill ends where the new one begins.
    const old = this.#replicas.get(id)
    if (old !== undefined) this.#closeReplica(now, old, Math.max(old.bill.closedUntil, now), NO_REPORTS)
    const bill = new ReplicaBill(Math.max(now, this.#nextSecond * US_PER_S), nanoPerHourOf(usdPerHour ?? 0))
    this.#replicas.set(id, { id, poolId, bill, releasedAt: undefined, lastUs: new Map() })
  }

  /** The replica costs nothing from now on. */
  release(now: Instant, replicaId: string): void {
    const known = this.#replicas.get(replicaId)
    if (known !== undefined) known.releasedAt ??= now
  }

  join(reporterId: string): void {
    this.#reporters.set(reporterId, { reportedUpTo: this.#nextSecond - 1, isGone: false })
  }

  /** A gateway reports no more: it stopped in order, or it died with what it knew. */
  leave(reporterId: string, how: 'stopped' | 'crashed'): void {
    const reporter = this.#reporters.get(reporterId)
    if (reporter === undefined) return
    if (how === 'crashed') reporter.isGone = true
    else this.#forget(reporterId)
  }

  report(report: SecondReport): void {
    const { reporterId, second } = report
    const reporter = this.#reporters.get(reporterId)
    if (reporter !== undefined) reporter.reportedUpTo = Math.max(reporter.reportedUpTo, second)
    if (second < this.#nextSecond || second >= this.#nextSecond + SECONDS_KEPT_MAX) {
      this.#lateReports++
      this.#endedLate.push(...report.ended)
      return
    }
    const waiting = this.#reports.get(second)
    if (waiting === undefined) this.#reports.set(second, [report])
    else waiting.push(report)
  }

  /** Closes every second that is due. */
  closeDue(now: Instant): void {
    while (this.#isDue(now, this.#nextSecond)) this.#close(now, (this.#nextSecond + 1) * US_PER_S)
  }

  /** The owner stops: everything up to now is closed, the second that runs included. */
  finish(now: Instant): void {
    for (const id of this.#replicas.keys()) this.release(now, id)
    while (this.#nextSecond * US_PER_S < now) this.#close(now, Math.min(now, (this.#nextSecond + 1) * US_PER_S))
    // Reports of a second that has not begun have nothing but tickets that ended at this instant.
    const ended = [...this.#reports.values()].flatMap((reports) => reports.flatMap((report) => report.ended))
    this.#reports.clear()
    this.#endTickets(now, ended)
  }

  #isDue(now: Instant, second: number): boolean {
    const endAt = (second + 1) * US_PER_S
    if (now < endAt) return false
    if (now >= endAt + CLOSE_US_MAX) return true
    for (const { reportedUpTo, isGone } of this.#reporters.values()) if (!isGone && reportedUpTo < second) return false
    return true
  }

  #close(now: Instant, endAt: Instant): void {
    const heard = heardFrom(this.#reports.get(this.#nextSecond) ?? [])
    this.#reports.delete(this.#nextSecond)
    this.#nextSecond++
    for (const replica of this.#replicas.values()) {
      const until = Math.min(endAt, replica.releasedAt ?? endAt)
      if (until > replica.bill.closedUntil) this.#closeReplica(now, replica, until, heard)
      if (replica.releasedAt !== undefined && until >= replica.releasedAt) this.#replicas.delete(replica.id)
    }
    this.#endTickets(now, heard.ended)
    for (const [id, { isGone }] of this.#reporters) if (isGone) this.#forget(id)
  }

  #forget(reporterId: string): void {
    this.#reporters.delete(reporterId)
    for (const { lastUs } of this.#replicas.values()) lastUs.delete(reporterId)
  }

  #closeReplica(now: Instant, replica: WatchedReplica, until: Instant, heard: Heard): void {
    const { bill } = replica
    const fromAt = bill.closedUntil
    const billNano = bill.close(until)
    const own = heard.byReplica.get(replica.id) ?? []
    const reports = own.map(({ said }) => said)
    const missing = this.#missing(replica, heard, own)
    const split = splitSecond({ billNano, spanUs: until - fromAt, reports, ...missing })
    const told = this.#book(replica, split, heard.wasted)
    const closed: SecondClosed = {
      kind: 'second-closed',
      at: now,
      replicaId: replica.id,
      poolId: replica.poolId,
      fromAt,
      toAt: until,
      billedSince: bill.since,
      nanoPerHour: bill.nanoPerHour,
      billNano,
      busyUs: split.busyUs,
      isMeasured: split.isMeasured,
      ...told,
    }
    assertExact(closed)
    this.#options.onSecond(closed)
  }

  /** What reporters that are silent about this second took here in their last one. */
  #missing({ lastUs }: WatchedReplica, heard: Heard, own: readonly Said[]): { crashedUs: number; lateUs: number } {
    const missing = { crashedUs: 0, lateUs: 0 }
    for (const [reporterId, { isGone }] of this.#reporters) {
      if (heard.reporterIds.has(reporterId)) lastUs.delete(reporterId)
      else if (isGone) missing.crashedUs += lastUs.get(reporterId) ?? 0
      else missing.lateUs += lastUs.get(reporterId) ?? 0
    }
    for (const { reporterId, said } of own) lastUs.set(reporterId, sumUs(said))
    return missing
  }

  /** Charges the accounts of tickets, and returns the second's lines. */
  #book(
    { poolId, bill }: WatchedReplica,
    split: SplitSecond,
    wasted: readonly WastedAttempt[],
  ): Pick<SecondClosed, 'tenants' | 'lines'> {
    const used = new Map<string, number>()
    const lines = {
      idleNano: 0,
      wasteNano: 0,
      platformNano: 0,
      crashedNano: split.crashedNano,
      lateNano: split.lateNano,
    }
    const terms = { scale: split.scale, nanoPerUs: bill.nanoPerHour / US_PER_HOUR, isMeasured: split.isMeasured }
    for (const part of split.rows) {
      const { row, usedNano, againNano } = part
      const account = this.#accountOf(part)
      lines.wasteNano += againNano
      if (account === undefined) lines.lateNano += usedNano
      else {
        account.charge(row, part, terms)
        if (row.isErrand) lines.platformNano += usedNano
        else used.set(row.tenantId, (used.get(row.tenantId) ?? 0) + usedNano)
      }
    }
    const idle = shareIdle(split.idleNano, this.#options.idleSharers(poolId, used))
    lines.idleNano = split.idleNano
    for (const nano of idle.values()) lines.idleNano -= nano
    // An attempt that ended for nothing: what its tenant was charged with, here and in seconds that are closed, moves.
    for (const { ticketId, attempt } of wasted) {
      const account = this.#accounts.get(ticketId)
      const nano = account?.waste(attempt) ?? 0
      if (account === undefined || nano === 0) continue
      lines.wasteNano += nano
      used.set(account.tenantId, (used.get(account.tenantId) ?? 0) - nano)
    }
    return { tenants: tenantsOf(used, idle), lines }
  }

  #accountOf({ row }: SplitRow): TicketAccount | undefined {
    const { ticketId } = row
    let account = this.#accounts.get(ticketId)
    if (account === undefined && this.#accounts.size < this.#accountsMax) {
      account = new TicketAccount(row)
      this.#accounts.set(ticketId, account)
    }
    return account
  }

  #endTickets(now: Instant, ended: readonly TicketEnd[]): void {
    const late = this.#endedLate
    this.#endedLate = []
    for (const ticket of [...late, ...ended]) {
      const { ticketId } = ticket
      const account = this.#accounts.get(ticketId) ?? new TicketAccount(ticket)
      this.#accounts.delete(ticketId)
      this.#options.onTicket(account.close(now, ticketId))
    }
  }
}

const US_PER_HOUR = 3_600 * US_PER_S

export const secondOf = (at: Instant): number => Math.floor(at / US_PER_S)

/** What one gateway said of one replica. */
interface Said {
  readonly reporterId: string
  readonly said: ReplicaSecond
}

/** All reports of one second. */
interface Heard {
  readonly reporterIds: ReadonlySet<string>
  readonly byReplica: ReadonlyMap<string, readonly Said[]>
  readonly wasted: readonly WastedAttempt[]
  readonly ended: readonly TicketEnd[]
}

function heardFrom(reports: readonly SecondReport[]): Heard {
  const byReplica = new Map<string, Said[]>()
  for (const { reporterId, replicas } of reports) {
    for (const said of replicas) {
      const known = byReplica.get(said.replicaId)
      if (known === undefined) byReplica.set(said.replicaId, [{ reporterId, said }])
      else known.push({ reporterId, said })
    }
  }
  return {
    reporterIds: new Set(reports.map(({ reporterId }) => reporterId)),
    byReplica,
    wasted: reports.flatMap((report) => report.wasted),
    ended: reports.flatMap((report) => report.ended),
  }
}

const NO_REPORTS = heardFrom([])

function sumUs({ rows }: ReplicaSecond): number {
  let us = 0
  for (const { time } of rows) us += spentUs(time)
  return us
}

function tenantsOf(used: ReadonlyMap<string, number>, idle: ReadonlyMap<string, number>): TenantSecond[] {
  const ids = new Set([...used.keys(), ...idle.keys()])
  return [...ids].map((tenantId) => ({
    tenantId,
    usedNano: used.get(tenantId) ?? 0,
    idleNano: idle.get(tenantId) ?? 0,
  }))
}

/** Law L15, to the nano-dollar. */
export function sumOfLines({ tenants, lines }: Pick<SecondClosed, 'tenants' | 'lines'>): number {
  const { idleNano, wasteNano, platformNano, crashedNano, lateNano } = lines
  let nano = idleNano + wasteNano + platformNano + crashedNano + lateNano
  for (const tenant of tenants) nano += tenant.usedNano + tenant.idleNano
  return nano
}

function assertExact(closed: SecondClosed): void {
  const sum = sumOfLines(closed)
  assert(sum === closed.billNano, `the lines are ${sum} of a bill of ${closed.billNano} nano-dollars (L15)`)
}
