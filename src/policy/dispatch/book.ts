import { assert } from '../../base/assert.ts'
import { ChurningMap } from '../../base/churning-map.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { Lease } from '../../domain/fleet.ts'
import type { Estimate } from '../../domain/plan.ts'
import type { BacklogObserver, Candidate, PoolLane } from './candidate.ts'
import type { DispatcherOptions } from './dispatch-options.ts'
import type { Measured } from './offer.ts'
import type { PoolState } from './pool-state.ts'
import type { ReplicaRoom } from './replica-room.ts'
import { SharedBuffer } from './shared-buffer.ts'

/**
 * Who waits, and who holds what? The dispatcher's books: every count, sum and charge is changed here and nowhere else,
 * so that a ticket is in exactly one place (a lane, a lease, or gone) and every total agrees with it.
 *
 * Laws L2 (a lease is granted once and returned once) and the counts behind L3.
 */
export class Book {
  readonly buffer: SharedBuffer
  readonly #options: DispatcherOptions
  readonly #onBacklogChange: BacklogObserver | undefined
  readonly #waiting = new Map<string, Candidate>()
  readonly #held = new ChurningMap<number, Candidate>()
  readonly #byExpiry = new IndexedHeap<Candidate>()
  #leaseId = 0
  #returnedCount = 0

  constructor(options: DispatcherOptions, onBacklogChange: BacklogObserver | undefined) {
    this.#options = options
    this.#onBacklogChange = onBacklogChange
    this.buffer = new SharedBuffer(options.queueRequestsMax)
  }

  waiting(ticketId: string): Candidate | undefined {
    return this.#waiting.get(ticketId)
  }

  held(leaseId: number): Candidate | undefined {
    return this.#held.get(leaseId)
  }

  nextExpiryAt(): number | undefined {
    return this.#byExpiry.peekKey()
  }

  nextExpired(now: number): Candidate | undefined {
    const at = this.#byExpiry.peekKey()
    return at !== undefined && at <= now ? this.#byExpiry.peek() : undefined
  }

  enqueue(pool: PoolState, candidate: Candidate): void {
    const before = this.#waiting.size
    this.#waiting.set(candidate.ticketId, candidate)
    assert(this.#waiting.size > before, 'a ticket waits in one place')
    candidate.lane.add(candidate)
    this.buffer.admit(candidate.lane)
    // A ticket that never expires needs no place among the expiries.
    if (candidate.expiresAt < Number.POSITIVE_INFINITY) this.#byExpiry.push(candidate, candidate.expiresAt)
    this.#moveQueued(pool, candidate.lane, 1, candidate.estimate)
  }

  markReady(pool: PoolState, candidate: Candidate, estimate: Estimate): void {
    if (estimate !== candidate.estimate) {
      this.#moveQueued(pool, candidate.lane, -1, candidate.estimate)
      this.#moveQueued(pool, candidate.lane, 1, estimate)
    }
    candidate.lane.markReady(candidate, estimate)
  }

  /** It leaves its lane without a turn. */
  dismiss(pool: PoolState, candidate: Candidate): void {
    candidate.lane.remove(candidate)
    this.#unqueue(pool, candidate)
  }

  /** It gets its turn: charged with the predicted cost, or with its input alone where the order asks for that. */
  grant(pool: PoolState, candidate: Candidate, room: ReplicaRoom): Lease {
    assert(room.fits(candidate.estimate), 'L2: no lease beyond what a replica may hold')
    const { lane, estimate } = candidate
    lane.take(candidate)
    this.#unqueue(pool, candidate)
    const { fairness } = pool.sideOf(lane)
    candidate.chargedTokens = fairness.isChargedAhead ? estimate.outputTokens : 0
    const ahead = estimate.outputTokens * this.#options.outputTokenCost
    candidate.chargedCost = fairness.isChargedAhead ? estimate.cost : Math.max(0, estimate.cost - ahead)
    fairness.takeTurn(lane, candidate.chargedCost)
    candidate.room = room
    room.ledger.hold(estimate)
    this.#moveHeld(pool, lane, 1, estimate.cost)
    pool.grantedCount++
    const lease: Lease = { id: ++this.#leaseId, ticketId: candidate.ticketId, replica: room.replica }
    this.#held.set(lease.id, candidate)
    return lease
  }

  /** Its first token has come: the next prompt may go to that replica. */
  begin(candidate: Candidate): void {
    if (candidate.hasBegun || candidate.room === undefined) return
    candidate.hasBegun = true
    candidate.room.ledger.begin(candidate.estimate)
  }

  /** Output so far: what goes beyond the charge is charged, and KV room is held for what goes beyond the room. */
  progress(pool: PoolState, candidate: Candidate, outputTokens: number): void {
    if (outputTokens > candidate.chargedTokens) this.#chargeOn(pool, candidate, outputTokens)
    const beyondTokens = outputTokens - Math.ceil(candidate.estimate.outputTokensHigh) - candidate.grownKvTokens
    if (beyondTokens > 0) this.#growRoom(pool, candidate, beyondTokens)
  }

  #chargeOn(pool: PoolState, candidate: Candidate, outputTokens: number): void {
    const { fairness } = pool.sideOf(candidate.lane)
    const ahead = fairness.isChargedAhead ? Math.ceil(outputTokens * this.#options.overrunRatio) : 0
    const cost = (outputTokens + ahead - candidate.chargedTokens) * this.#options.outputTokenCost
    candidate.chargedTokens = outputTokens + ahead
    candidate.chargedCost += cost
    fairness.charge(candidate.lane, cost)
  }

  #growRoom(pool: PoolState, candidate: Candidate, tokens: number): void {
    const block = this.#options.growKvTokens
    const grown = Math.ceil(tokens / block) * block
    candidate.grownKvTokens += grown
    candidate.room?.ledger.grow(grown)
    if (candidate.room !== undefined) pool.refreshOpen(candidate.room)
  }

  /** The attempt is over: the account is trued up, the room is free again, and the limit learns. */
  giveBack(now: number, pool: PoolState, candidate: Candidate, leaseId: number, measured: Measured): ReplicaRoom {
    const { lane, room, estimate } = candidate
    assert(room !== undefined, 'who holds a lease has room at a replica')
    this.#held.delete(leaseId)
    this.#returnedCount++
    candidate.state = 'gone'
    pool.sideOf(lane).fairness.charge(lane, measured.cost - candidate.chargedCost)
    this.#moveHeld(pool, lane, -1, estimate.cost)
    if (measured.ending !== 'cancelled') {
      const { firstTokenUs, meanTokenUs } = measured
      room.limit.observe(now, { firstTokenUs, meanTokenUs, isDropped: measured.ending !== 'finished' }, room.ledger)
    }
    this.begin(candidate)
    room.ledger.drop(estimate, candidate.grownKvTokens)
    return room
  }

  reweighTenant(pools: Iterable<PoolState>, tenantId: string, weight: number): void {
    this.buffer.reweigh(tenantId, weight)
    for (const pool of pools) {
      const backlog = pool.backlogs.get(tenantId)
      if (backlog === undefined) continue
      backlog.weight = weight
      this.#onBacklogChange?.(pool.id, tenantId, weight, 0, 'standard')
    }
  }

  #unqueue(pool: PoolState, candidate: Candidate): void {
    this.#waiting.delete(candidate.ticketId)
    this.buffer.dismiss(candidate.lane)
    if (candidate.heapIndex >= 0) this.#byExpiry.remove(candidate)
    this.#moveQueued(pool, candidate.lane, -1, candidate.estimate)
  }

  #moveQueued(pool: PoolState, lane: PoolLane, sign: 1 | -1, estimate: Estimate): void {
    const { backlog } = lane
    const cost = sign * estimate.cost
    backlog.queuedCount += sign
    pool.queuedCount += sign
    // Exactly nothing when nothing waits, whatever rounding left behind.
    backlog.queuedCost = backlog.queuedCount === 0 ? 0 : backlog.queuedCost + cost
    pool.queuedCost = pool.queuedCount === 0 ? 0 : pool.queuedCost + cost
    this.#onBacklogChange?.(pool.id, lane.tenantId, backlog.weight, cost, lane.band)
  }

  #moveHeld(pool: PoolState, lane: PoolLane, sign: 1 | -1, cost: number): void {
    const { backlog } = lane
    lane.heldCount += sign
    backlog.heldCount += sign
    pool.heldCount += sign
    backlog.heldCost = backlog.heldCount === 0 ? 0 : backlog.heldCost + sign * cost
    pool.heldCost = pool.heldCount === 0 ? 0 : pool.heldCost + sign * cost
  }

  assertInvariants(pools: Iterable<PoolState>): void {
    this.buffer.assertInvariants()
    assert(this.#waiting.size === this.buffer.count, 'every waiting ticket has a place in the buffer')
    assert(this.#leaseId === this.#returnedCount + this.#held.size, 'L2: leases granted = returned + held')
    const heldByRoom = new Map<ReplicaRoom, number>()
    for (const { room } of this.#held.values()) {
      if (room !== undefined) heldByRoom.set(room, (heldByRoom.get(room) ?? 0) + 1)
    }
    let queuedCount = 0
    let heldCount = 0
    for (const pool of pools) {
      queuedCount += pool.queuedCount
      heldCount += pool.heldCount
      for (const room of pool.rooms.values()) {
        assert(room.ledger.held === (heldByRoom.get(room) ?? 0), 'L2: a ledger holds what leases say')
      }
    }
    assert(queuedCount === this.#waiting.size, 'the pools together hold every waiting ticket')
    assert(heldCount === this.#held.size, 'the pools together hold every lease')
  }
}
