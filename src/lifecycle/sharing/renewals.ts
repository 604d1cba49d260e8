import type { CancelTimer, Clock } from '../../base/clock.ts'
import { withinTime } from '../../base/within-time.ts'
import type { Asking } from '../../policy/budgets/scope-budget.ts'
import type { PermitBook, PermitCall } from '../../policy/sharing/leased-permits.ts'
import type { ShardCall, SliceBook } from '../../policy/sharing/slice-book.ts'
import type { Sharing, SliceFetcher } from '../sharing-ports.ts'

/**
 * Who carries the slice book's calls to the store, and the answers back? One timer: every `renewUs` it asks the book what
 * is due and sends it. No request waits for it, except one that is larger than its slice (`fetch`), and that one for
 * FETCH_US_MAX at most.
 *
 * Deliberately not: no second try. A call that got no answer is made again by the next renewal, from newer accounts.
 *
 * Bounds: one call a shard within the book's `callUs`, and each ends within the port's own limit; a fetch has one timer.
 */
export class Renewals implements SliceFetcher {
  readonly #clock: Clock
  readonly #sharing: Sharing
  readonly #book: SliceBook
  readonly #permits: PermitBook | undefined
  readonly #underWay = new Set<Promise<void>>()
  #cancelTimer: CancelTimer | undefined
  #isStopped = false
  #counts = NONE

  constructor(clock: Clock, sharing: Sharing, book: SliceBook, permits?: PermitBook) {
    this.#clock = clock
    this.#sharing = sharing
    this.#book = book
    this.#permits = permits
  }

  /** Resolves when every shard has answered a first beat, or after START_US_MAX: the store then knows this gateway. */
  async start(): Promise<void> {
    const first = Promise.all(this.#sendDue())
    this.#schedule()
    await withinTime(this.#clock, this.#clock.now() + START_US_MAX, first)
  }

  /** Leaves the roster, so that others have this gateway's share at once. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelTimer?.()
    const { clock, id } = { clock: this.#clock, id: this.#book.id }
    await withinTime(clock, clock.now() + START_US_MAX, this.#sharing.leave(id))
  }

  /** Sends nothing more, and does not leave: the process is gone. */
  abandon(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  /**
   * Asks the store once for amounts that are larger than the slices in hand. True when an answer has come in time, and
   * the budgets should be asked again.
   */
  async fetch(asking: readonly Asking[]): Promise<boolean> {
    if (this.#isStopped || asking.length === 0) return false
    const answered = this.#askNow(asking)
    const { kind } = await withinTime(this.#clock, this.#clock.now() + FETCH_US_MAX, answered)
    // Both are counted at its end: a report between the two would have told of a late one, and taken it back afterwards.
    this.#count({ fetchCount: 1, fetchedCount: kind === 'done' ? 1 : 0 })
    return kind === 'done'
  }

  /** What was done since this was last asked. */
  takeCounts(): RenewalCounts {
    const counts = this.#counts
    this.#counts = NONE
    return counts
  }

  /** A shard with a call in flight takes the next one when that is answered. */
  async #askNow(asking: readonly Asking[]): Promise<void> {
    await Promise.all(this.#sendDue())
    if (!asking.some(({ isAsking }) => isAsking)) return
    await Promise.all(this.#underWay)
    await Promise.all(this.#sendDue())
  }

  #schedule(): void {
    if (this.#isStopped) return
    this.#cancelTimer = this.#clock.at(this.#clock.now() + this.#book.options.renewUs, () => {
      void Promise.all(this.#sendDue())
      this.#schedule()
    })
  }

  #sendDue(): Promise<void>[] {
    const now = this.#clock.now()
    const calls = this.#book.due(now).map((call) => this.#send(call))
    const permitCall = this.#permits?.due(now)
    if (permitCall !== undefined) calls.push(this.#sendPermits(permitCall))
    for (const sent of calls) {
      this.#underWay.add(sent)
      void sent.finally(() => this.#underWay.delete(sent))
    }
    return calls
  }

  #count(more: Partial<RenewalCounts>): void {
    const { callCount, answerCount, accountCount, fetchCount, fetchedCount } = this.#counts
    this.#counts = {
      callCount: callCount + (more.callCount ?? 0),
      answerCount: answerCount + (more.answerCount ?? 0),
      accountCount: accountCount + (more.accountCount ?? 0),
      fetchCount: fetchCount + (more.fetchCount ?? 0),
      fetchedCount: fetchedCount + (more.fetchedCount ?? 0),
    }
  }

  async #sendPermits(call: PermitCall): Promise<void> {
    const answer = await this.#sharing.room(call.member, call.told, call.asks)
    this.#count({ callCount: 1, answerCount: answer === undefined ? 0 : 1, accountCount: call.asks.length })
    this.#permits?.answered(this.#clock.now(), call, answer)
  }

  async #send(call: ShardCall): Promise<void> {
    const answer = await this.#sharing.take(call.shard, call.member, call.accounts)
    this.#count({ callCount: 1, answerCount: answer === undefined ? 0 : 1, accountCount: call.accounts.length })
    this.#book.answered(this.#clock.now(), call, answer)
  }
}

export interface RenewalCounts {
  readonly callCount: number
  readonly answerCount: number
  readonly accountCount: number
  readonly fetchCount: number
  readonly fetchedCount: number
}

const NONE: RenewalCounts = { callCount: 0, answerCount: 0, accountCount: 0, fetchCount: 0, fetchedCount: 0 }

/** How long one request may wait for the store: a round trip takes a tenth of a millisecond. */
const FETCH_US_MAX = 20_000

/** A gateway does not wait longer than this for a store at its start or end. */
const START_US_MAX = 1_000_000
