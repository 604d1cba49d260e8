import { assert } from '../../base/assert.ts'
import { type Instant, US_PER_S } from '../../base/clock.ts'
import type { SecondClosed, TenantSecond } from '../../domain/cost-entry.ts'
import { spentUs } from '../../domain/engine-time.ts'
import { type SplitSecond, splitSecond } from './close-second.ts'
import { type IdleSharer, shareIdle } from './idle-sharing.ts'
import { nanoPerHourOf, ReplicaBill } from './replica-bill.ts'
import type { ReplicaCharges, ReplicaSecond, SecondReport, TenantCredit } from './second-report.ts'

/**
 * When is a second of the fleet final, and what did it cost whom?
 *
 * One owner closes each second, once, in order: as soon as every gateway has reported it, or CLOSE_US_MAX after its end.
 *
 *     second s runs ──▶ gateways report weights for s ──▶ s is closed ──▶ `second-closed` for every replica
 *                                                                         charges for every report of s
 *
 * What a gateway had not reported by then is guessed from its last report and has a line of its own: `late`, or
 * `crashed` if the gateway is known to be gone. A report that comes later changes no closed second; its tickets cost
 * nothing for it, and still end. An attempt that turns out to be for nothing is moved from its tenant to `waste` in the
 * second in which that is known: a credit and a debit of the same sum, so that closed seconds stay as they are.
 *
 * Law L15 is asserted for every second that is closed. Bounds: reports of a few seconds; what tickets cost is summed up
 * where they live (`ticket-accounts.ts`). The whole memory of an owner is `state`, so that another one can go on.
 * It has no clock: its owner calls `closeDue` once a second.
 */
export interface SecondCloserOptions {
  /** Who pays for a pool's idle time; an empty list is the platform. `used` is what each tenant used in the second. */
  readonly idleSharers: (poolId: string, used: ReadonlyMap<string, number>) => readonly IdleSharer[]
  readonly onSecond: (closed: SecondClosed) => void
  /**
   * What a report was charged with; nothing when it came too late. Answers what goes back to tenants at once: accounts
   * that are elsewhere say it with a later report.
   */
  readonly onCharges: (
    now: Instant,
    report: SecondReport,
    charges: readonly ReplicaCharges[],
  ) => readonly TenantCredit[]
  /** Seconds that may wait to be closed. */
  readonly secondsKeptMax?: number
  /** Where another owner ended. */
  readonly state?: CloserState
}

export interface BilledReplica {
  readonly id: string
  readonly poolId: string
  /** Undefined where no price is known: its seconds cost nothing, and its tickets say so. */
  readonly usdPerHour: number | undefined
}

/** All that the next owner must know. */
export interface CloserState {
  readonly nextSecond: number
  readonly replicas: readonly BillState[]
  readonly reporters: ReadonlyArray<{ readonly id: string; readonly reportedUpTo: number }>
}

export interface BillState {
  readonly id: string
  readonly poolId: string
  readonly since: Instant
  readonly nanoPerHour: number
  readonly closedUntil: Instant
  readonly lastUs: ReadonlyArray<readonly [reporterId: string, us: number]>
}

/** Microseconds that a second waits for reports after its end. */
export const CLOSE_US_MAX = 3 * US_PER_S
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
  readonly #replicas = new Map<string, WatchedReplica>()
  readonly #reporters = new Map<string, Reporter>()
  /** By second, reports that wait for its closing. */
  readonly #reports = new Map<number, SecondReport[]>()
  /** Told with reports that came too late: they go into the next second that is closed. */
  #lateCredits: TenantCredit[] = []
  #nextSecond: number
  #lateReports = 0

  constructor(now: Instant, options: SecondCloserOptions) {
    const { state } = options
    this.#options = options
    this.#nextSecond = state?.nextSecond ?? secondOf(now)
    for (const { id, reportedUpTo } of state?.reporters ?? []) this.#reporters.set(id, { reportedUpTo, isGone: false })
    for (const { id, poolId, since, nanoPerHour, closedUntil, lastUs } of state?.replicas ?? []) {
      const bill = new ReplicaBill(since, nanoPerHour, closedUntil)
      this.#replicas.set(id, { id, poolId, bill, releasedAt: undefined, lastUs: new Map(lastUs) })
    }
  }

  /** The first second that is not closed. */
  get nextSecond(): number {
    return this.#nextSecond
  }

  view(): { readonly pendingSeconds: number; readonly lateReports: number } {
    return { pendingSeconds: this.#reports.size, lateReports: this.#lateReports }
  }

  /** A replica that leaves within the second that runs is billed to the second's end by the next owner. */
  state(): CloserState {
    return {
      nextSecond: this.#nextSecond,
      replicas: Array.from(this.#replicas.values(), ({ id, poolId, bill, lastUs }) => {
        const { since, nanoPerHour, closedUntil } = bill
        return { id, poolId, since, nanoPerHour, closedUntil, lastUs: [...lastUs] }
      }),
      reporters: Array.from(this.#reporters, ([id, { reportedUpTo }]) => ({ id, reportedUpTo })),
    }
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
    if (old !== undefined) {
      const until = Math.max(old.bill.closedUntil, now)
      this.#tell(now, this.#split(old, until, NO_REPORTS), [])
    }
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

  reporterIds(): IterableIterator<string> {
    return this.#reporters.keys()
  }

  /** A gateway reports no more: it stopped in order, or it died with what it knew. */
  leave(reporterId: string, how: 'stopped' | 'crashed'): void {
    const reporter = this.#reporters.get(reporterId)
    if (reporter === undefined) return
    if (how === 'crashed') reporter.isGone = true
    else this.#forget(reporterId)
  }

  report(now: Instant, report: SecondReport): void {
    const { reporterId, second } = report
    const reporter = this.#reporters.get(reporterId)
    if (reporter !== undefined) reporter.reportedUpTo = Math.max(reporter.reportedUpTo, second)
    const keptMax = this.#options.secondsKeptMax ?? SECONDS_KEPT_MAX
    if (second < this.#nextSecond || second >= this.#nextSecond + keptMax) {
      this.#lateReports++
      this.#lateCredits.push(...(report.credits ?? []), ...this.#options.onCharges(now, report, []))
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
    const left = [...this.#reports.values()].flat()
    this.#reports.clear()
    for (const report of left) this.#options.onCharges(now, report, [])
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
    const parts: Part[] = []
    for (const replica of this.#replicas.values()) {
      const until = Math.min(endAt, replica.releasedAt ?? endAt)
      if (until > replica.bill.closedUntil) parts.push(this.#split(replica, until, heard))
      if (replica.releasedAt !== undefined && until >= replica.releasedAt) this.#replicas.delete(replica.id)
    }
    const credits = this.#charge(now, heard, parts)
    // What goes back is booked at one replica; a second without any leaves it to the next.
    if (parts.length === 0) this.#lateCredits = credits
    for (const [i, part] of parts.entries()) this.#tell(now, part, i === 0 ? credits : [])
    for (const [id, { isGone }] of this.#reporters) if (isGone) this.#forget(id)
  }

  #forget(reporterId: string): void {
    this.#reporters.delete(reporterId)
    for (const { lastUs } of this.#replicas.values()) lastUs.delete(reporterId)
  }

  #split(replica: WatchedReplica, until: Instant, heard: Heard): Part {
    const { bill } = replica
    const fromAt = bill.closedUntil
    const billNano = bill.close(until)
    const own = heard.byReplica.get(replica.id) ?? []
    const reports = own.map(({ said }) => said)
    const missing = this.#missing(replica, heard, own)
    return {
      replica,
      fromAt,
      until,
      billNano,
      own,
      split: splitSecond({ billNano, spanUs: until - fromAt, reports, ...missing }),
    }
  }

  /** Tells every reporter what its rows cost, and collects what goes back to tenants. */
  #charge(now: Instant, heard: Heard, parts: readonly Part[]): TenantCredit[] {
    const charges = new Map<SecondReport, ReplicaCharges[]>(heard.reports.map((report) => [report, []]))
    for (const { replica, own, split } of parts) {
      const { scale, isMeasured, rows } = split
      const nanoPerUs = replica.bill.nanoPerHour / US_PER_HOUR
      let next = 0
      for (const { report, said } of own) {
        const mine = rows.slice(next, next + said.rows.length)
        next += said.rows.length
        const usedNano = mine.map((row) => row.usedNano)
        const againNano = mine.map((row) => row.againNano)
        charges.get(report)?.push({ replicaId: replica.id, scale, nanoPerUs, isMeasured, usedNano, againNano })
      }
    }
    const credits = this.#lateCredits
    this.#lateCredits = []
    for (const [report, own] of charges)
      credits.push(...(report.credits ?? []), ...this.#options.onCharges(now, report, own))
    return credits
  }

  #tell(now: Instant, { replica, fromAt, until, billNano, split }: Part, credits: readonly TenantCredit[]): void {
    const { bill, id: replicaId, poolId } = replica
    const closed: SecondClosed = {
      kind: 'second-closed',
      at: now,
      replicaId,
      poolId,
      fromAt,
      toAt: until,
      billedSince: bill.since,
      nanoPerHour: bill.nanoPerHour,
      billNano,
      busyUs: split.busyUs,
      isMeasured: split.isMeasured,
      ...this.#book(poolId, split, credits),
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
    for (const { report, said } of own) lastUs.set(report.reporterId, sumUs(said))
    return missing
  }

  /** The second's lines. */
  #book(poolId: string, split: SplitSecond, credits: readonly TenantCredit[]): Pick<SecondClosed, 'tenants' | 'lines'> {
    const used = new Map<string, number>()
    const add = (tenantId: string, nano: number): void => void used.set(tenantId, (used.get(tenantId) ?? 0) + nano)
    const { crashedNano, lateNano } = split
    const lines = { idleNano: 0, wasteNano: 0, platformNano: 0, crashedNano, lateNano }
    for (const { row, usedNano, againNano } of split.rows) {
      lines.wasteNano += againNano
      if (row.isErrand) lines.platformNano += usedNano
      else add(row.tenantId, usedNano)
    }
    const idle = shareIdle(split.idleNano, this.#options.idleSharers(poolId, used))
    lines.idleNano = split.idleNano
    for (const nano of idle.values()) lines.idleNano -= nano
    for (const { tenantId, nano, line } of credits) {
      if (line === 'waste') lines.wasteNano += nano
      else lines.lateNano += nano
      add(tenantId, -nano)
    }
    return { tenants: tenantsOf(used, idle), lines }
  }
}

/** One replica's part of a second that is being closed. */
interface Part {
  readonly replica: WatchedReplica
  readonly fromAt: Instant
  readonly until: Instant
  readonly billNano: number
  readonly own: readonly Said[]
  readonly split: SplitSecond
}

const US_PER_HOUR = 3_600 * US_PER_S

export const secondOf = (at: Instant): number => Math.floor(at / US_PER_S)

/** What one gateway said of one replica. */
interface Said {
  readonly report: SecondReport
  readonly said: ReplicaSecond
}

/** All reports of one second. */
interface Heard {
  readonly reports: readonly SecondReport[]
  readonly reporterIds: ReadonlySet<string>
  readonly byReplica: ReadonlyMap<string, readonly Said[]>
}

function heardFrom(reports: readonly SecondReport[]): Heard {
  const byReplica = new Map<string, Said[]>()
  for (const report of reports) {
    for (const said of report.replicas) {
      const known = byReplica.get(said.replicaId)
      if (known === undefined) byReplica.set(said.replicaId, [{ report, said }])
      else known.push({ report, said })
    }
  }
  return { reports, reporterIds: new Set(reports.map(({ reporterId }) => reporterId)), byReplica }
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
