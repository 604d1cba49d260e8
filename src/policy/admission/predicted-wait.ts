import type { Instant } from '../../base/clock.ts'
import type { SharePath, WeightChange } from '../../domain/share-path.ts'
import type { Band } from '../../domain/tenant.ts'
import { Backlog, type Newcomer } from './backlog.ts'
import { DrainRate, type DrainRateOptions } from './drain-rate.ts'
import { TurnEnds } from './turn-ends.ts'

/**
 * If this joined its lane now, how long until its turn?
 *
 * The work that goes before it under fair sharing (`backlog.ts`) at the rate at which the pool works (`drain-rate.ts`).
 * `offline` takes what is left over: before an offline ticket goes everything of the other bands that waits. When no
 * replica has room, the ticket's own worth of work must end before it can begin, so its cost is added: an empty queue
 * before busy engines is not a wait of zero.
 *
 * Nor is the rate of the work all. A replica runs only so many turns at once, by its slots, its memory and the promised
 * time per token; when all of them run, a turn is given when one ends (`turn-ends.ts`), and a stretch of long answers
 * halves that. With n turns before it, f free ones and r ending in a microsecond, it waits (n − f) ÷ r if that is longer.
 * On recorded conversations at four times the capacity 5.7 % of the admitted were late without this, 2.5 % with it.
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
  /** Turns that run, and that could run beside them; absent where that is unknown, or nobody waits. */
  readonly turns?: { readonly running: number; readonly free: number } | undefined
  /** Microseconds that a turn like this one lasts. */
  readonly lastsUs?: number | undefined
  readonly replicaCount: number
  /** Work that is expected to come and to go before it, and how much of that is its own tenant's; none. */
  readonly expected?: ExpectedWork
}

export interface ExpectedWork {
  readonly cost: number
  readonly ownCost: number
}

const NOTHING_EXPECTED: ExpectedWork = { cost: 0, ownCost: 0 }

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
  readonly #ends = new TurnEnds()
  #waitingSince: Instant = 0
  /** Tickets that wait, without those that wait offline. */
  #onlineCount = 0
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

  /** Without what waits offline. */
  get onlineCost(): number {
    return this.#shared.total
  }

  /**
   * What one replica works off in a microsecond, in cost: `costPerShareUs` of the work that is offered, where engine time
   * is known. Silence does not count: while nobody is there to work, nothing is learned about how fast one would be.
   */
  drainOfOne(now: Instant, costPerShareUs?: number): number {
    return this.#drain.perUs(now, 1, false) * (costPerShareUs ?? this.#costPerShareUs)
  }

  /** Nobody is there to work: what waits meanwhile says nothing about how fast a replica is. */
  nobodyWorks(now: Instant): void {
    this.#drain.startedWaiting(now)
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
    if (ticket.band !== 'offline') this.#onlineCount++
    this.#backlogOf(ticket.band).join(now, ticket)
  }

  /** It got its turn: with the share, band and cost that it joined with. */
  granted(now: Instant, ticket: Waiting): void {
    this.#leave(ticket, now)
  }

  /** It left without a turn: expired, evicted, cancelled, or refused after all. */
  withdrawn(ticket: Waiting): void {
    this.#leave(ticket, undefined)
  }

  #leave(ticket: Waiting, grantedAt: Instant | undefined): void {
    this.#shareUs -= shareOf(ticket)
    if (ticket.band !== 'offline') this.#onlineCount--
    this.#backlogOf(ticket.band).leave(ticket, grantedAt)
  }

  /** A turn ended. */
  ended(now: Instant): void {
    this.#ends.observe(now)
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
    const { expected = NOTHING_EXPECTED, cost } = question
    const own = question.hasRoom ? 0 : cost
    const before = (question.band === 'offline' ? this.#shared.total : 0) + own + expected.cost
    // While its own tenant's expected work is served, others have their turns, too.
    const newcomer = expected.ownCost === 0 ? question : { ...question, cost: cost + expected.ownCost }
    const inTurnUs = this.#backlogOf(question.band).waitUs(now, newcomer, { drainPerUs, isOwnCounted })
    const workUs = inTurnUs + before / drainPerUs
    return Math.ceil(Math.max(workUs, this.#turnUs(now, question, workUs * drainPerUs)))
  }

  /** Until a turn is free for a ticket with this much work before it. Offline work has bounds of its own. */
  #turnUs(now: Instant, { band, turns, lastsUs = 0 }: WaitQuestion, ahead: number): number {
    if (turns === undefined || turns.running < TURNS_MIN || band === 'offline' || this.#onlineCount === 0) return 0
    const turnsAhead = (ahead * this.#onlineCount) / this.#shared.total
    if (turnsAhead <= turns.free) return 0
    return (turnsAhead - turns.free) / this.#ends.perUs(now, { running: turns.running, lastsUs })
  }

  #backlogOf(band: Band): Backlog {
    return band === 'offline' ? this.#offline : this.#shared
  }
}

/** Of fewer, too few end in the memory of `TurnEnds` to tell a rate from luck. */
const TURNS_MIN = 32

const shareOf = (ticket: { readonly cost: number; readonly shareUs?: number | undefined }): number =>
  ticket.shareUs ?? ticket.cost
