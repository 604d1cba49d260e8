import { type Clock, type Instant, secondsToUs, US_PER_S } from '../../base/clock.ts'
import type { SecondClosed } from '../../domain/cost-entry.ts'
import type { Fence } from '../../domain/leader.ts'
import {
  addBillHours,
  type BillHour,
  type GatheredReports,
  type SecondStore,
  type SecondsClosing,
} from '../../domain/second-store.ts'
import { CLOSE_US_MAX, type CloserState, SecondCloser, secondOf } from '../../policy/cost/second-closer.ts'
import { readToldReport, writeToldCharges } from '../../policy/cost/told-report.ts'
import type { Journal, Leadership } from '../ports.ts'
import { type IdleTerms, idleSharersOf, watchFleet } from './seconds-desk.ts'

/**
 * The owner of a cell's seconds, where this gateway leads: reads the reports of all gateways, closes what is due, and
 * writes sums, answers and its own memory in one act that carries its fence. Nothing is told before it is written. After a
 * failure, and when another one led meanwhile, it begins again from what is written: so every second is closed once.
 */
export interface SharedSecondsParts {
  readonly clock: Clock
  readonly journal: Journal
  readonly leadership: Leadership
  readonly store: SecondStore
  readonly reporterId: string
}

/** A gateway that has not reported for so long is gone. */
const SILENT_US = secondsToUs(5)
/** Seconds that wait while nobody leads. */
const SECONDS_KEPT_MAX = 128
/** After a time in which nothing was closed, gateways have so long to tell what they kept. */
const CATCH_UP_US = secondsToUs(2)
/** A memory that is older is not continued: no gateway ran, and nobody bills that time. */
const STALE_S = 60

interface Term {
  readonly closer: SecondCloser
  /** Reports that this closer has: their last serials by gateway. */
  readonly serials: Map<string, number>
  readonly heardAt: Map<string, Instant>
  readonly fence: number
  readonly closesFrom: Instant
  revision: number
}

type Answer = SecondsClosing['answers'][number]

export class LeadSeconds {
  readonly #parts: SharedSecondsParts
  readonly #terms: IdleTerms
  #term: Term | undefined
  #closed: SecondClosed[] = []
  #answers: Answer[] = []
  isBusy = false

  constructor(parts: SharedSecondsParts, terms: IdleTerms) {
    this.#parts = parts
    this.#terms = terms
  }

  /** Closes what is due, if this gateway leads. Never throws. */
  async look(): Promise<void> {
    if (this.isBusy) return
    const role = this.#parts.leadership.role()
    if (role.kind !== 'leads' || role.fence === undefined) {
      this.#term = undefined
      return
    }
    this.isBusy = true
    try {
      await this.#lead(role.fence)
    } catch {
      // The store is away, or its answer was lost: what it has is read again.
      this.#term = undefined
    } finally {
      this.isBusy = false
    }
  }

  async #lead(fence: Fence): Promise<void> {
    const { clock, store, journal } = this.#parts
    const gathered = await store.gather()
    const now = clock.now()
    const { revision } = gathered
    let term = this.#term
    if (term?.fence !== fence.number || term.revision !== revision) term = this.#begin(now, fence, gathered)
    this.#term = term
    this.#closed = []
    this.#answers = []
    this.#feed(now, term, gathered)
    watchFleet(now, term.closer, this.#terms.policies)
    if (now >= term.closesFrom) term.closer.closeDue(now)
    const [closed, answers] = [this.#closed, this.#answers]
    if (closed.length + answers.length === 0) return
    const isWritten = await store.close({
      fence,
      revision,
      state: JSON.stringify(term.closer.state()),
      bills: billsOf(closed),
      answers,
    })
    if (!isWritten) {
      this.#term = undefined
      return
    }
    term.revision++
    for (const second of closed) journal.record(second)
  }

  #begin(now: Instant, fence: Fence, { revision, state: text }: GatheredReports): Term {
    const state = stateOf(now, text)
    const serialOf = new WeakMap<object, number>()
    this.#serialOf = serialOf
    const closer = new SecondCloser(now, {
      idleSharers: (poolId, used) => idleSharersOf(this.#terms, poolId, used),
      onSecond: (second) => this.#closed.push(second),
      onCharges: (_now, report, charges) => {
        const serial = serialOf.get(report)
        const { reporterId } = report
        if (serial !== undefined) this.#answers.push({ reporterId, serial, body: writeToldCharges(charges) })
        return []
      },
      secondsKeptMax: SECONDS_KEPT_MAX,
      ...(state !== undefined && { state }),
    })
    const heardAt = new Map(Array.from(closer.reporterIds(), (id) => [id, now]))
    const isBehind = now > (closer.nextSecond + 1) * US_PER_S + CLOSE_US_MAX
    const closesFrom = isBehind ? now + CATCH_UP_US : now
    return { closer, serials: new Map(), heardAt, fence: fence.number, closesFrom, revision }
  }

  #serialOf = new WeakMap<object, number>()

  #feed(now: Instant, { closer, serials, heardAt }: Term, { reports }: GatheredReports): void {
    const last = new Set<string>()
    for (const { reporterId, serial, body } of reports) {
      if (serial <= (serials.get(reporterId) ?? 0)) continue
      serials.set(reporterId, serial)
      const read = readToldReport(reporterId, body)
      if (read === undefined) {
        this.#answers.push({ reporterId, serial, body: '[]' })
        continue
      }
      if (!heardAt.has(reporterId)) closer.join(reporterId)
      heardAt.set(reporterId, now)
      this.#serialOf.set(read.report, serial)
      closer.report(now, read.report)
      if (read.isLast) last.add(reporterId)
    }
    for (const [id, at] of heardAt) {
      const isGone = now - at > SILENT_US
      if (isGone || last.has(id)) {
        closer.leave(id, last.has(id) ? 'stopped' : 'crashed')
        heardAt.delete(id)
      }
    }
  }
}

function stateOf(now: Instant, text: string | undefined): CloserState | undefined {
  if (text === undefined) return undefined
  const state = JSON.parse(text) as CloserState
  return state.nextSecond > secondOf(now) - STALE_S ? state : undefined
}

const HOUR_US = 3_600 * US_PER_S

/** Sums by replica and hour. */
function billsOf(closed: readonly SecondClosed[]): BillHour[] {
  const sums = new Map<string, BillHour>()
  for (const { replicaId, poolId, fromAt, billNano, tenants, lines } of closed) {
    const hour = Math.floor(fromAt / HOUR_US)
    let [tenantsNano, tenantsIdleNano] = [0, 0]
    for (const { usedNano, idleNano } of tenants) {
      tenantsNano += usedNano
      tenantsIdleNano += idleNano
    }
    const one = { replicaId, poolId, hour, seconds: 1, billNano, tenantsNano, tenantsIdleNano, ...lines }
    const key = `${hour} ${replicaId}`
    const known = sums.get(key)
    sums.set(key, known === undefined ? one : addBillHours(known, one))
  }
  return [...sums.values()]
}
