import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import type { Lease, Pool, Replica } from '../../domain/fleet.ts'
import type { Refusal } from '../../domain/outcome.ts'

/**
 * Now: who goes, and where? A machine: it takes events with `now`, returns effects as values, and says when it wants
 * to be woken next. It has no clock, sets no timer and wakes no promise; `lifecycle/turnstile.ts` does.
 *
 * First version: tickets of a pool go in order of arrival to the replica with the fewest in flight, while it has room
 * under its limit. A ticket whose time runs out in the queue is dropped before it costs anything.
 *
 * Laws: L2 (a lease is granted once and returned once, never over the limit), L3 (the queue is bounded by
 * `queueMax`), L6 (no idle room while a ticket waits).
 *
 * Example: one replica with limit 2 and tickets a, b, c offered at once: a and b are granted, c waits; `release(a)`
 * returns one effect, c granted.
 */
export interface Offer {
  readonly ticketId: string
  readonly poolId: string
  /** Dropped if it has had no turn by then. */
  readonly expiresAt: Instant
}

export type DispatchEffect =
  | { readonly kind: 'granted'; readonly ticketId: string; readonly lease: Lease }
  | { readonly kind: 'expired'; readonly ticketId: string; readonly refusal: Refusal }

export interface DispatcherOptions {
  readonly queueMax: number
  readonly concurrencyMaxOf: (replica: Replica) => number
}

interface Seat {
  readonly replica: Replica
  isReady: boolean
  inFlight: number
}

interface PoolQueue {
  readonly seats: readonly Seat[]
  waiting: Offer[]
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #pools = new Map<string, PoolQueue>()
  readonly #seats = new Map<string, Seat>()
  readonly #leases = new Map<number, Seat>()
  #waitingCount = 0
  #leaseCount = 0

  constructor(pools: readonly Pool[], options: DispatcherOptions) {
    this.#options = options
    for (const pool of pools) {
      const seats = pool.replicas.map((replica) => ({ replica, isReady: false, inFlight: 0 }))
      this.#pools.set(pool.id, { seats, waiting: [] })
      for (const seat of seats) this.#seats.set(seat.replica.id, seat)
    }
  }

  /** Joins the queue, or is refused because it is full. */
  offer(now: Instant, offer: Offer): { readonly refusal: Refusal } | { readonly effects: DispatchEffect[] } {
    if (this.#waitingCount >= this.#options.queueMax) return { refusal: queueFull(this.#waitingCount) }
    this.#poolOf(offer.poolId).waiting.push(offer)
    this.#waitingCount++
    return { effects: this.#dispatch(now, offer.poolId) }
  }

  /** Back to the head: a ticket whose first replica refused or was lost. It keeps the place it once had. */
  offerAgain(now: Instant, offer: Offer): DispatchEffect[] {
    this.#poolOf(offer.poolId).waiting.unshift(offer)
    this.#waitingCount++
    return this.#dispatch(now, offer.poolId)
  }

  /** Leaves the queue; nothing happens if it is not in it. */
  withdraw(_now: Instant, ticketId: string, poolId: string): void {
    const pool = this.#poolOf(poolId)
    const kept = pool.waiting.filter((offer) => offer.ticketId !== ticketId)
    this.#waitingCount -= pool.waiting.length - kept.length
    pool.waiting = kept
  }

  release(now: Instant, lease: Lease): DispatchEffect[] {
    const seat = this.#leases.get(lease.id)
    assert(seat !== undefined, 'a lease is returned once')
    this.#leases.delete(lease.id)
    seat.inFlight--
    return this.#dispatch(now, lease.replica.poolId)
  }

  replicaChanged(now: Instant, replicaId: string, isReady: boolean): DispatchEffect[] {
    const seat = this.#seats.get(replicaId)
    if (seat === undefined || seat.isReady === isReady) return []
    seat.isReady = isReady
    return this.#dispatch(now, seat.replica.poolId)
  }

  nextWakeupAt(): Instant | undefined {
    let next: Instant | undefined
    for (const pool of this.#pools.values()) {
      for (const offer of pool.waiting) if (next === undefined || offer.expiresAt < next) next = offer.expiresAt
    }
    return next
  }

  onWakeup(now: Instant): DispatchEffect[] {
    const effects: DispatchEffect[] = []
    for (const pool of this.#pools.values()) {
      const kept = pool.waiting.filter((offer) => offer.expiresAt > now)
      for (const offer of pool.waiting) {
        if (offer.expiresAt <= now)
          effects.push({ kind: 'expired', ticketId: offer.ticketId, refusal: WAITED_TOO_LONG })
      }
      this.#waitingCount -= pool.waiting.length - kept.length
      pool.waiting = kept
    }
    return effects
  }

  view(): { readonly waiting: number; readonly inFlight: number; readonly readyReplicas: number } {
    let readyReplicas = 0
    for (const seat of this.#seats.values()) if (seat.isReady) readyReplicas++
    return { waiting: this.#waitingCount, inFlight: this.#leases.size, readyReplicas }
  }

  #dispatch(_now: Instant, poolId: string): DispatchEffect[] {
    const effects: DispatchEffect[] = []
    const pool = this.#poolOf(poolId)
    for (let offer = pool.waiting[0]; offer !== undefined; offer = pool.waiting[0]) {
      const seat = this.#lightest(pool.seats)
      if (seat === undefined) break
      pool.waiting.shift()
      this.#waitingCount--
      seat.inFlight++
      const lease = { id: ++this.#leaseCount, ticketId: offer.ticketId, replica: seat.replica }
      this.#leases.set(lease.id, seat)
      effects.push({ kind: 'granted', ticketId: offer.ticketId, lease })
    }
    return effects
  }

  #lightest(seats: readonly Seat[]): Seat | undefined {
    let lightest: Seat | undefined
    for (const seat of seats) {
      if (!seat.isReady || seat.inFlight >= this.#options.concurrencyMaxOf(seat.replica)) continue
      if (lightest === undefined || seat.inFlight < lightest.inFlight) lightest = seat
    }
    return lightest
  }

  #poolOf(poolId: string): PoolQueue {
    const pool = this.#pools.get(poolId)
    assert(pool !== undefined, 'a ticket is offered to a pool that exists')
    return pool
  }
}

/** Without a forecast: a queue of this bound drains in about this time. */
const RETRY_AFTER_US = 1_000_000

const WAITED_TOO_LONG: Refusal = {
  code: 'waited-too-long',
  because: 'No engine became free in time.',
  blame: 'platform',
  retryAfterUs: RETRY_AFTER_US,
}

function queueFull(waiting: number): Refusal {
  const because = `The queue is full: ${waiting} requests are waiting.`
  return { code: 'queue-full', because, blame: 'platform', retryAfterUs: RETRY_AFTER_US }
}
