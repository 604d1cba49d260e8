import type { Instant } from '../../base/clock.ts'
import type { Band } from '../../domain/tenant.ts'
import { Backlog, type Share } from './backlog.ts'
import { DrainRate, type DrainRateOptions } from './drain-rate.ts'

/**
 * If this joined its lane now, how long until its turn?
 *
 * The work that goes before it under fair sharing (`backlog.ts`) divided by how fast the pool works (`drain-rate.ts`).
 * `offline` takes what is left over, so before an offline ticket goes everything of the other bands that waits. When
 * no replica has room, the ticket's own worth of work must end before it can begin, so its cost is added: an empty
 * queue before busy engines is not a wait of zero.
 *
 * One of these per pool. The lifecycle tells it who joins and leaves the lanes and what was completed; it keeps sums,
 * not tickets. Law L10: it sees predicted costs only.
 *
 * Example: 900 weighted tokens ahead, two replicas at 0.015 a microsecond: 900 ÷ 0.03 = 30 ms; with no room and a
 * cost of 300, 1,200 ÷ 0.03 = 40 ms.
 */
export interface WaitQuestion {
  readonly share: Share
  readonly band: Band
  readonly cost: number
  /** Could a replica begin it at once, were it first in line? */
  readonly hasRoom: boolean
  readonly replicaCount: number
}

export class PredictedWait {
  readonly #shared = new Backlog()
  readonly #offline = new Backlog()
  readonly #drain: DrainRate

  /** The prior: weighted tokens per microsecond that one replica should do, from its step-time model. */
  constructor(priorPerReplicaUs: number, options: Partial<DrainRateOptions> = {}) {
    this.#drain = new DrainRate(priorPerReplicaUs, options)
  }

  get backlogCost(): number {
    return this.#shared.total + this.#offline.total
  }

  ofTenant(share: Share): number {
    return this.#shared.ofTenant(share) + this.#offline.ofTenant(share)
  }

  /** From admission on, ready or not: what is admitted is seen by the next decision. */
  join(now: Instant, ticket: { readonly share: Share; readonly band: Band; readonly cost: number }): void {
    if (this.backlogCost === 0) this.#drain.startedWaiting(now)
    this.#backlogOf(ticket.band).change(ticket.share, ticket.band, ticket.cost)
  }

  /** Granted, expired, evicted or cancelled: with the share, band and cost that it joined with. */
  leave(ticket: { readonly share: Share; readonly band: Band; readonly cost: number }): void {
    this.#backlogOf(ticket.band).change(ticket.share, ticket.band, -ticket.cost)
  }

  /** A ticket (or a part of it) was completed, at its predicted cost. */
  completed(now: Instant, done: { readonly cost: number; readonly replicaCount: number }): void {
    if (this.backlogCost > 0) this.#drain.observe(now, done)
  }

  drainPerUs(now: Instant, replicaCount: number): number {
    return this.#drain.perUs(now, replicaCount, this.backlogCost > 0)
  }

  waitUs(now: Instant, question: WaitQuestion): number {
    const { share, band, cost } = question
    const shared = this.#shared
    const ahead =
      band === 'offline' ? shared.total + this.#offline.aheadOf(share, band, cost) : shared.aheadOf(share, band, cost)
    return this.#toUs(now, ahead, question)
  }

  /** Had its tenant nothing waiting: when even this is too long, the platform is to blame, not the tenant. */
  waitWithoutOwnUs(now: Instant, question: WaitQuestion): number {
    const { share, band, cost } = question
    const shared = this.#shared
    const ahead =
      band === 'offline'
        ? shared.total + this.#offline.aheadWithoutOwn(share, cost)
        : shared.aheadWithoutOwn(share, cost)
    return this.#toUs(now, ahead, question)
  }

  #toUs(now: Instant, ahead: number, question: WaitQuestion): number {
    const work = question.hasRoom ? ahead : ahead + question.cost
    if (work <= 0) return 0
    const perUs = this.drainPerUs(now, question.replicaCount)
    return perUs > 0 ? Math.ceil(work / perUs) : Number.POSITIVE_INFINITY
  }

  #backlogOf(band: Band): Backlog {
    return band === 'offline' ? this.#offline : this.#shared
  }
}
