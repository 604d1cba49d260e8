import { type CancelTimer, type Instant, msToUs, secondsToUs } from '../../base/clock.ts'
import type { ToldCharges } from '../../domain/second-store.ts'
import { secondOf } from '../../policy/cost/second-closer.ts'
import type { SecondReport, TenantCredit } from '../../policy/cost/second-report.ts'
import type { TicketAccounts } from '../../policy/cost/ticket-accounts.ts'
import { readToldCharges, writeToldReport } from '../../policy/cost/told-report.ts'
import { LeadSeconds, type SharedSecondsParts } from './lead-seconds.ts'
import type { IdleTerms, SecondsDesk } from './seconds-desk.ts'

/** Seconds for which the store may be away. */
const WAITING_MAX = 64
/** Microseconds between two looks of the leader, and of a gateway that stops. */
const LOOK_US = msToUs(250)
/** The last second is closed 3 s after its end at the latest. */
const END_US_MAX = secondsToUs(5)

interface Waiting {
  readonly report: SecondReport
  readonly isLast: boolean
  isTold: boolean
}

/**
 * Seconds of replicas that several gateways use: each tells what it had, and the leader of the cell closes them.
 *
 *     report ──▶ store ──▶ leader closes the second ──▶ store ──▶ charges of this gateway's rows ──▶ its tickets' costs
 *
 * A report is kept until its answer has come; tickets cost what was answered. Nothing waits for it but the end of the
 * process, for END_US_MAX, where a ticket's cost is open. Bound: WAITING_MAX reports; the oldest is then given up, and its tickets do not pay for it.
 */
export class SharedSeconds implements SecondsDesk {
  readonly #parts: SharedSecondsParts
  readonly #accounts: TicketAccounts
  readonly #lead: LeadSeconds
  /** By serial, oldest first. */
  readonly #waiting = new Map<number, Waiting>()
  #heard: number[] = []
  #credits: TenantCredit[] = []
  #serial = 0
  #lateReports = 0
  #endsAt: Instant | undefined
  #isExchanging = false
  #cancelLook: CancelTimer | undefined
  #whenDone: (() => void) | undefined
  isDone = false

  constructor(parts: SharedSecondsParts, accounts: TicketAccounts, terms: IdleTerms) {
    this.#parts = parts
    this.#accounts = accounts
    this.#lead = new LeadSeconds(parts, terms)
  }

  start(): void {
    this.#look()
  }

  report(now: Instant, report: SecondReport): void {
    this.#hand(now, report, false)
  }

  tick(): void {
    void this.#exchange()
  }

  /** The last report says so: the leader waits for no other. */
  finish(now: Instant): void {
    this.#endsAt = now + END_US_MAX
    this.#hand(now, this.#empty(now), true)
    void this.#exchange()
  }

  abandon(): void {
    this.isDone = true
    this.#cancelLook?.()
    this.#whenDone?.()
  }

  whenDone(): Promise<void> {
    if (this.isDone || this.#endsAt === undefined) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenDone = resolve
    })
  }

  view(): ReturnType<SecondsDesk['view']> {
    return { pendingSeconds: this.#waiting.size, lateReports: this.#lateReports }
  }

  #hand(now: Instant, report: SecondReport, isLast: boolean): void {
    const credits = this.#credits
    this.#credits = []
    this.#waiting.set(++this.#serial, { report: { ...report, credits }, isLast, isTold: false })
    for (const [serial, old] of this.#waiting) {
      if (this.#waiting.size <= WAITING_MAX) break
      this.#waiting.delete(serial)
      this.#lateReports++
      this.#credits.push(...this.#accounts.charged(now, old.report, []))
    }
  }

  /** One exchange at a time. A store that is away is asked again with the next tick. */
  async #exchange(): Promise<void> {
    if (this.#isExchanging || this.isDone) return
    this.#isExchanging = true
    const { store, reporterId } = this.#parts
    const fresh = [...this.#waiting].filter(([, { isTold }]) => !isTold)
    const told = fresh.map(([serial, { report, isLast }]) => ({ serial, body: writeToldReport(report, isLast) }))
    const heard = this.#heard
    try {
      const answers = await store.exchange({ reporterId, told, heard })
      if (!this.isDone) this.#take(heard, fresh, answers)
    } catch {
      // Serials and answers stay as they were: what was written all the same is written once.
    } finally {
      this.#isExchanging = false
    }
  }

  #take(heard: readonly number[], fresh: ReadonlyArray<[number, Waiting]>, answers: readonly ToldCharges[]): void {
    const now = this.#parts.clock.now()
    for (const [, waiting] of fresh) waiting.isTold = true
    const forgotten = new Set(heard)
    this.#heard = this.#heard.filter((serial) => !forgotten.has(serial))
    for (const { serial, body } of answers.toSorted((a, b) => a.serial - b.serial)) {
      if (!this.#heard.includes(serial)) this.#heard.push(serial)
      const waiting = this.#waiting.get(serial)
      if (waiting === undefined) continue
      this.#waiting.delete(serial)
      this.#credits.push(...this.#accounts.charged(now, waiting.report, readToldCharges(waiting.report, body)))
    }
  }

  readonly #look = (): void => {
    if (this.isDone) return
    const { clock } = this.#parts
    if (this.#endsAt !== undefined) this.#lookAtEnd(clock.now(), this.#endsAt)
    if (this.isDone) return
    void this.#lead.look()
    this.#cancelLook = clock.at(clock.now() + LOOK_US, this.#look)
  }

  #lookAtEnd(now: Instant, endsAt: Instant): void {
    const isAnswered = !this.#isOwed() && this.#heard.length === 0
    if (now >= endsAt) this.#giveUp(now)
    else if (isAnswered && this.#credits.length > 0) this.#hand(now, this.#empty(now), true)
    else if (isAnswered && !this.#isExchanging && !this.#lead.isBusy) this.#giveUp(now)
    else void this.#exchange()
  }

  /** A report that was not told yet, or whose answer a ticket waits for. */
  #isOwed(): boolean {
    for (const { report, isTold } of this.#waiting.values())
      if (!isTold || report.replicas.length + report.ended.length + report.wasted.length > 0) return true
    return false
  }

  #empty(now: Instant): SecondReport {
    return { reporterId: this.#parts.reporterId, second: secondOf(now), replicas: [], wasted: [], ended: [] }
  }

  /** What was not answered in time costs its tickets nothing more. */
  #giveUp(now: Instant): void {
    for (const { report } of this.#waiting.values()) this.#accounts.charged(now, report, [])
    this.#waiting.clear()
    this.abandon()
  }
}
