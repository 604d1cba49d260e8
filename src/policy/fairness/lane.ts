import { assert } from '../../base/assert.ts'
import { IntervalHeap } from '../../base/interval-heap.ts'
import type { Estimate } from '../../domain/plan.ts'
import { BANDS, type Band } from '../../domain/tenant.ts'
import { Share } from './share.ts'

/**
 * Who is first inside one key's share?
 *
 * A lane is the bounded queue of one pool × key × band. Inside it a bid counts, and waiting counts: the static order
 * `bid − α·arrival` (highest first) is a linearly ageing priority whose order never changes while two tickets wait,
 * so nothing has to be re-sorted. Written as a virtual deadline, `dueAt = arrivedAt − bid × agingUsPerBid`, earliest
 * first, it is Earliest Deadline First. A heap of negated bids, as the reference documents have it, never ages and
 * starves the lowest bid.
 *
 * Tickets whose retrieval or screening still runs are *not ready*: they count against the bounds and keep their
 * place, because their place is their `dueAt`, but cannot be the head. A ticket offered again goes before all others.
 *
 *     ready:    [ due 3 | due 5 | due 9 ]   head = due 3, tail = the last of both
 *     unready:  [ due 1 | due 12 ]          due 1 becomes the head the moment it is ready
 *
 * Deliberately not: a lane grants nothing, knows no other lane, and drops nobody on its own.
 *
 * Laws: L3 (the dispatcher asks `isWithin` and takes back what does not fit). Bounded starvation: a ticket with bid b
 * that arrived at t is overtaken only by tickets that arrived before t + (bidMax − b) × agingUsPerBid.
 *
 * Worked example, one second a bid: bid 0 arrived at 10.0 s is due at 10.0 s; bid 5 arrived at 14.0 s is due at 9.0 s
 * and goes first; bid 5 arrived at 15.1 s is due at 10.1 s and does not.
 */
export const LANE_DEFAULTS = {
  /** Requests. Ten seconds of waiting at 50 turns a second; a client with more in the queue is better told at once. */
  depthMax: 512,
  /** Microseconds of predicted engine time, one hour: at 64 sequences at once it drains within a minute. */
  engineUsMax: 3_600_000_000,
  /** Microseconds of waiting that outweigh one unit of bid. A second: a bid of 10 is worth ten seconds, never more. */
  agingUsPerBid: 1_000_000,
} as const

export interface LaneOptions {
  readonly depthMax: number
  readonly engineUsMax: number
  readonly agingUsPerBid: number
}

export interface WaiterFacts {
  readonly ticketId: string
  readonly estimate: Estimate
  readonly bid: number
  readonly arrivedAt: number
  readonly expiresAt: number
  readonly isReady: boolean
}

export interface WaiterPlace {
  readonly lane: Lane
  /** It had a turn that came to nothing: it goes to the head. */
  readonly isAgain: boolean
  readonly sequence: number
  readonly agingUsPerBid: number
}

/** `unready` and `ready` stand in a lane; `held` has a lease; `gone` has left for good. */
type WaiterState = 'unready' | 'ready' | 'held' | 'gone'

/** A ticket's place in its lane, and later the record of its lease: one object from offer to release. */
export class Waiter {
  readonly ticketId: string
  readonly lane: Lane
  readonly arrivedAt: number
  readonly dueAt: number
  readonly expiresAt: number
  readonly sequence: number
  estimate: Estimate
  state: WaiterState
  /** Place in the dispatcher's heap of expiries. */
  heapIndex = -1

  constructor(facts: WaiterFacts, place: WaiterPlace) {
    this.ticketId = facts.ticketId
    this.lane = place.lane
    this.arrivedAt = facts.arrivedAt
    this.dueAt = place.isAgain ? Number.NEGATIVE_INFINITY : dueAtOf(facts, place.agingUsPerBid)
    this.expiresAt = facts.expiresAt
    this.sequence = place.sequence
    this.estimate = facts.estimate
    this.state = facts.isReady ? 'ready' : 'unready'
  }
}

function dueAtOf({ arrivedAt, bid }: Pick<WaiterFacts, 'arrivedAt' | 'bid'>, agingUsPerBid: number): number {
  return arrivedAt - Math.round(bid * agingUsPerBid)
}

export function isSooner(a: Waiter, b: Waiter): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt
  if (a.arrivedAt !== b.arrivedAt) return a.arrivedAt < b.arrivedAt
  return a.sequence < b.sequence
}

/** Sweeping tiny heaps is wasted work: below this many dead places we do not look. */
const DEAD_BEFORE_SWEEP = 16

export interface LaneName {
  readonly poolId: string
  readonly orgId: string
  readonly tenantId: string
  readonly tenantWeight: number
  readonly keyId: string
  readonly keyWeight: number
  readonly band: Band
}

export class Lane extends Share {
  readonly poolId: string
  readonly tenantId: string
  readonly keyId: string
  readonly band: Band
  readonly bandRank: number
  orgId: string
  tenantWeight: number
  /** Where it hangs in the fairness tree; set by the order it is attached to. */
  parent: Share | undefined = undefined

  readonly #ready = new IntervalHeap<Waiter>(isSooner)
  #unready: IntervalHeap<Waiter> | undefined
  #deadCount = 0
  #count = 0
  #readyCount = 0
  #cost = 0
  #engineUs = 0

  constructor(name: LaneName) {
    super(name.keyId, name.keyWeight)
    this.poolId = name.poolId
    this.orgId = name.orgId
    this.tenantId = name.tenantId
    this.tenantWeight = name.tenantWeight
    this.keyId = name.keyId
    this.band = name.band
    this.bandRank = BANDS.indexOf(name.band)
  }

  get count(): number {
    return this.#count
  }

  get readyCount(): number {
    return this.#readyCount
  }

  /** Predicted cost of everything that waits here. */
  get cost(): number {
    return this.#cost
  }

  get engineUs(): number {
    return this.#engineUs
  }

  override headCost(): number {
    return this.head()?.estimate.cost ?? 0
  }

  isWithin(options: LaneOptions): boolean {
    // One ticket is always let in: a single long answer must not be refused by an empty lane.
    return this.#count <= options.depthMax && (this.#count <= 1 || this.#engineUs <= options.engineUsMax)
  }

  add(waiter: Waiter): void {
    this.#count++
    this.#cost += waiter.estimate.cost
    this.#engineUs += waiter.estimate.engineUs
    this.#place(waiter)
  }

  markReady(waiter: Waiter, estimate: Estimate): void {
    assert(waiter.state === 'unready', 'only a ticket that waits unready can become ready')
    this.#cost += estimate.cost - waiter.estimate.cost
    this.#engineUs += estimate.engineUs - waiter.estimate.engineUs
    waiter.estimate = estimate
    waiter.state = 'ready'
    this.#deadCount++
    this.#place(waiter)
    this.#sweep()
  }

  /** The ticket goes to a replica: the caller holds its lease from here. */
  take(waiter: Waiter): void {
    assert(waiter.state === 'ready', 'only who is ready gets a turn')
    const isHead = this.head() === waiter
    this.#forget(waiter)
    waiter.state = 'held'
    if (isHead) this.#ready.takeFirst()
    else this.#deadCount++
    this.#sweep()
  }

  /** Those who are ready: the head, and then roughly in the order in which their turns come. */
  *front(): Iterable<Waiter> {
    for (const waiter of this.#ready.fromFirst()) if (waiter.state === 'ready') yield waiter
  }

  /** Cancelled, expired, refused or evicted. What it leaves behind is swept when it outweighs the living. */
  remove(waiter: Waiter): void {
    this.#forget(waiter)
    waiter.state = 'gone'
    this.#deadCount++
    this.#sweep()
  }

  /** The first that is ready. */
  head(): Waiter | undefined {
    let first = this.#ready.first()
    while (first !== undefined && first.state !== 'ready') {
      this.#ready.takeFirst()
      this.#deadCount--
      first = this.#ready.first()
    }
    return first
  }

  /** Whether a ticket that joined now, and were ready, would stand before all that are ready. */
  wouldLead(facts: Pick<WaiterFacts, 'arrivedAt' | 'bid'>, agingUsPerBid: number): boolean {
    const head = this.head()
    if (head === undefined) return true
    const dueAt = dueAtOf(facts, agingUsPerBid)
    return dueAt === head.dueAt ? facts.arrivedAt < head.arrivedAt : dueAt < head.dueAt
  }

  /** The last of all, ready or not: who yields when somebody must. */
  tail(): Waiter | undefined {
    const ready = this.#lastLiving(this.#ready, 'ready')
    const unready = this.#unready === undefined ? undefined : this.#lastLiving(this.#unready, 'unready')
    if (ready === undefined || unready === undefined) return ready ?? unready
    return isSooner(ready, unready) ? unready : ready
  }

  #lastLiving(heap: IntervalHeap<Waiter>, living: WaiterState): Waiter | undefined {
    let last = heap.last()
    while (last !== undefined && last.state !== living) {
      heap.takeLast()
      this.#deadCount--
      last = heap.last()
    }
    return last
  }

  #place(waiter: Waiter): void {
    if (waiter.state === 'ready') {
      this.#readyCount++
      this.#ready.push(waiter, waiter.dueAt)
    } else {
      this.#unready ??= new IntervalHeap<Waiter>(isSooner)
      this.#unready.push(waiter, waiter.dueAt)
    }
  }

  #forget(waiter: Waiter): void {
    if (waiter.state === 'ready') this.#readyCount--
    this.#count--
    this.#cost -= waiter.estimate.cost
    this.#engineUs -= waiter.estimate.engineUs
    // An empty lane is exactly empty, whatever rounding left behind.
    if (this.#count === 0) {
      this.#cost = 0
      this.#engineUs = 0
    }
  }

  #sweep(): void {
    const held = this.#ready.size + (this.#unready?.size ?? 0)
    if (this.#deadCount <= DEAD_BEFORE_SWEEP || this.#deadCount * 2 <= held) return
    this.#ready.retain((waiter) => waiter.state === 'ready')
    this.#unready?.retain((waiter) => waiter.state === 'unready')
    this.#deadCount = 0
  }

  *[Symbol.iterator](): Iterator<Waiter> {
    for (const waiter of this.#ready) if (waiter.state === 'ready') yield waiter
    for (const waiter of this.#unready ?? []) if (waiter.state === 'unready') yield waiter
  }

  assertInvariants(options: LaneOptions): void {
    // Most lanes of a large pool are empty, and there is nothing to walk through.
    if (this.#ready.size === 0 && (this.#unready?.size ?? 0) === 0) {
      const isEmpty = this.#count === 0 && this.#readyCount === 0 && this.#deadCount === 0
      assert(isEmpty && this.#cost === 0 && this.#engineUs === 0, 'a lane counts what it holds')
      return
    }
    let count = 0
    let readyCount = 0
    let cost = 0
    for (const waiter of this) {
      count++
      cost += waiter.estimate.cost
      if (waiter.state === 'ready') readyCount++
    }
    assert(count === this.#count && readyCount === this.#readyCount, 'a lane counts what it holds')
    assert(Math.abs(cost - this.#cost) <= 1e-6 * Math.max(1, cost), 'a lane knows the cost of what it holds')
    assert(this.isWithin(options), 'L3: a lane is within its bounds')
    const held = this.#ready.size + (this.#unready?.size ?? 0)
    assert(held === count + this.#deadCount, 'dead places are counted')
    assert(
      this.#deadCount <= DEAD_BEFORE_SWEEP || this.#deadCount * 2 <= held,
      'dead places never outnumber the living',
    )
  }
}
