import type { Instant } from '../../base/clock.ts'
import type { SharePath, WeightChange } from '../../domain/share-path.ts'
import type { Band } from '../../domain/tenant.ts'
import { Backlog, type Newcomer } from './backlog.ts'
import { DrainRate, type DrainRateOptions } from './drain-rate.ts'

/**
 * If this joined its lane now, how long until its turn?
 *
 * The work that goes before it under fair sharing (`backlog.ts`) at the rate at which the pool works (`drain-rate.ts`).
 * `offline` takes what is left over: before an offline ticket goes everything of the other bands that waits. When no
 * replica has room, the ticket's own worth of work must end before it can begin, so its cost is added: an empty queue
 * before busy engines is not a wait of zero.
 *
 * One of these per pool. The dispatcher's book tells it of every ticket that joins, leaves or begins (by
 * `BacklogListener`); it keeps sums, not tickets. Law L10: it sees predicted costs only.
 *
 * Example: 900 weighted tokens ahead, two replicas at 0.015 a microsecond: 900 ÷ 0.03 = 30 ms; with no room and a
 * cost of 300, 40 ms.
 */
/** In cost, as fairness counts, and in what it takes of an engine's time, if that is known; else cost stands for both. */
export interface Waiting extends Newcomer {
  readonly shareUs?: number | undefined
}

export interface WaitQuestion extends Waiting {
  /** Could a replica begin it at once, were it first in line? */
  readonly hasRoom: boolean
  readonly replicaCount: number
}

export interface Begun {
  readonly grantedAt: Instant
  readonly cost: number
  readonly shareUs?: number | undefined
  readonly replicaCount: number
}

export class PredictedWait {
  readonly #shared = new Backlog()
  readonly #offline = new Backlog()
  readonly #drain: DrainRate
  #waitingSince: Instant = 0
  /** Time of engines that everything waiting will take. */
  #shareUs = 0
  /** Of what waited last. */
  #costPerShareUs: number

  /** The prior: weighted tokens per microsecond that one replica should do, from its step-time model. */
  constructor(priorPerReplicaUs: number, options: Partial<DrainRateOptions & { costPerShareUs: number }> = {}) {
    this.#costPerShareUs = options.costPerShareUs ?? 1
    this.#drain = new DrainRate(priorPerReplicaUs, options)
  }

  get backlogCost(): number {
    return this.#shared.total + this.#offline.total
  }

  ofTenant(share: SharePath): number {
    return this.#shared.ofTenant(share) + this.#offline.ofTenant(share)
  }

  /** From admission on, ready or not: what is admitted is seen by the next decision. */
  join(now: Instant, ticket: Waiting): void {
    if (this.backlogCost === 0) {
      this.#shareUs = 0
      this.#waitingSince = now
      this.#drain.startedWaiting(now)
    }
    this.#shareUs += shareOf(ticket)
    this.#backlogOf(ticket.band).join(now, ticket)
  }

  /** It got its turn: with the share, band and cost that it joined with. */
  granted(now: Instant, ticket: Waiting): void {
    this.#shareUs -= shareOf(ticket)
    this.#backlogOf(ticket.band).leave(ticket, now)
  }

  /** It left without a turn: expired, evicted, cancelled, or refused after all. */
  withdrawn(ticket: Waiting): void {
    this.#shareUs -= shareOf(ticket)
    this.#backlogOf(ticket.band).leave(ticket, undefined)
  }

  /** A weight changed: what waits counts by the new one, as in the order of turns. */
  reweigh(change: WeightChange): void {
    this.#shared.reweigh(change)
    this.#offline.reweigh(change)
  }

  /**
   * A ticket's prompt is done and its answer has begun: its predicted cost counts as worked off, if all of that was
   * done while others waited. What had its turn before they came was half done when the time began to count; at the
   * short waits of an ordinary day it would make the pool look several times as fast as it is.
   */
  begun(now: Instant, done: Begun): void {
    if (this.backlogCost === 0 || done.grantedAt < this.#waitingSince) return
    this.#drain.observe(now, { cost: shareOf(done), replicaCount: done.replicaCount })
  }

  /** In cost: engines drain their own time, and what waits has so much cost to it. */
  drainPerUs(now: Instant, replicaCount: number): number {
    const perUs = this.#drain.perUs(now, replicaCount, this.backlogCost > 0)
    const costPerShareUs = this.backlogCost > 0 ? this.backlogCost / this.#shareUs : this.#costPerShareUs
    this.#costPerShareUs = costPerShareUs
    return perUs * costPerShareUs
  }

  waitUs(now: Instant, question: WaitQuestion): number {
    return this.#waitUs(now, question, true)
  }

  /** Had its tenant nothing waiting: when even this is too long, the platform is to blame, not the tenant. */
  waitWithoutOwnUs(now: Instant, question: WaitQuestion): number {
    return this.#waitUs(now, question, false)
  }

  #waitUs(now: Instant, question: WaitQuestion, isOwnCounted: boolean): number {
    const drainPerUs = this.drainPerUs(now, question.replicaCount)
    if (drainPerUs <= 0) return Number.POSITIVE_INFINITY
    const before = (question.band === 'offline' ? this.#shared.total : 0) + (question.hasRoom ? 0 : question.cost)
    const inTurnUs = this.#backlogOf(question.band).waitUs(now, question, { drainPerUs, isOwnCounted })
    return Math.ceil(inTurnUs + before / drainPerUs)
  }

  #backlogOf(band: Band): Backlog {
    return band === 'offline' ? this.#offline : this.#shared
  }
}

const shareOf = (ticket: { readonly cost: number; readonly shareUs?: number | undefined }): number =>
  ticket.shareUs ?? ticket.cost
