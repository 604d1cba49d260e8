import { assert } from '../../base/assert.ts'
import { ChurningMap } from '../../base/churning-map.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { Lease } from '../../domain/fleet.ts'
import { type Estimate, meanCostOf } from '../../domain/plan.ts'
import type { WeightFactors } from '../../domain/pool-share.ts'
import type { WeightChange } from '../../domain/share-path.ts'
import type { OrgWeights, TreePlace } from '../fairness/tree-share.ts'
import type { BacklogListener } from './backlog-listener.ts'
import type { Candidate, PoolLane } from './candidate.ts'
import { Charges } from './charge-ahead.ts'
import type { DispatcherOptions } from './dispatch-options.ts'
import { GrowingAnswers } from './growing-answers.ts'
import type { Measured } from './offer.ts'
import type { PoolState } from './pool-state.ts'
import type { ReplicaRoom } from './replica-room.ts'
import { SharedBuffer } from './shared-buffer.ts'

/**
 * Who waits, and who holds what? The dispatcher's books: every count, sum and charge is changed here and nowhere else,
 * so that a ticket is in exactly one place (a lane, a lease, or gone) and every total agrees with it. A listener hears
 * of every change to what waits from here, so no other book of the queue is kept by hand.
 *
 * Laws L2 (a lease is granted once and returned once) and the counts behind L3.
 */
export class Book {
  readonly buffer: SharedBuffer
  /** Orgs with a weight of their own. Bound: the orgs of the configuration. */
  readonly #orgWeights = new Map<string, number>()
  readonly orgWeights: OrgWeights = this.#orgWeights
  readonly charges: Charges
  readonly growing: GrowingAnswers
  readonly #listener: BacklogListener | undefined
  readonly #waiting = new Map<string, Candidate>()
  readonly #held = new ChurningMap<number, Candidate>()
  readonly #byExpiry = new IndexedHeap<Candidate>()
  #leaseId = 0
  #returnedCount = 0

  constructor(options: DispatcherOptions, listener: BacklogListener | undefined) {
    this.charges = new Charges(options)
    this.growing = new GrowingAnswers(options.growKvTokens)
    this.#listener = listener
    this.buffer = new SharedBuffer(options.queueRequestsMax, this.#orgWeights)
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

  enqueue(now: number, pool: PoolState, candidate: Candidate): void {
    const before = this.#waiting.size
    this.#waiting.set(candidate.ticketId, candidate)
    assert(this.#waiting.size > before, 'a ticket waits in one place')
    candidate.lane.add(candidate)
    this.buffer.admit(candidate.lane)
    // A ticket that never expires needs no place among the expiries.
    if (candidate.expiresAt < Number.POSITIVE_INFINITY) this.#byExpiry.push(candidate, candidate.expiresAt)
    this.#moveQueued(pool, candidate.lane, 1, candidate.estimate)
    if (candidate.lane.band !== 'offline') candidate.lane.backlog.countForeground(now, 1)
    this.#tellJoined(now, candidate)
  }

  markReady(now: number, pool: PoolState, candidate: Candidate, estimate: Estimate): void {
    const isNew = estimate !== candidate.estimate
    if (isNew) {
      this.#moveQueued(pool, candidate.lane, -1, candidate.estimate)
      this.#moveQueued(pool, candidate.lane, 1, estimate)
    }
    candidate.lane.markReady(candidate, estimate)
    if (!isNew) return
    if (candidate.counted !== undefined) this.#listener?.left(candidate.counted)
    candidate.counted = undefined
    this.#tellJoined(now, candidate)
  }

  /** Whether listeners count what waits in the lane: a lane that may not go stands before nobody. O(lane) on a change. */
  setCounted(now: number, lane: PoolLane, isCounted: boolean): void {
    if (lane.isCounted === isCounted) return
    lane.isCounted = isCounted
    for (const waiter of lane) {
      const candidate = waiter as Candidate
      if (isCounted) this.#tellJoined(now, candidate)
      else if (candidate.counted !== undefined) {
        this.#listener?.left(candidate.counted)
        candidate.counted = undefined
      }
    }
  }

  /** The ticket leaves its lane without a turn. */
  dismiss(pool: PoolState, candidate: Candidate): void {
    candidate.lane.remove(candidate)
    this.#unqueue(pool, candidate)
    if (candidate.lane.band !== 'offline') candidate.lane.backlog.moveForeground(-1)
    if (candidate.counted !== undefined) this.#listener?.left(candidate.counted)
  }

  /** The ticket gets its turn: charged its input, and its predicted output or a part of that (`charge-ahead.ts`). */
  grant(now: number, pool: PoolState, candidate: Candidate, room: ReplicaRoom): Lease {
    assert(room.fits(candidate.estimate, candidate.lane.band), 'L2: no lease beyond what a replica may hold')
    const { lane, estimate } = candidate
    lane.take(candidate)
    this.#unqueue(pool, candidate)
    candidate.grantedAt = now
    if (candidate.counted !== undefined) this.#listener?.granted(now, candidate.counted)
    const { fairness } = pool.sideOf(lane)
    const chargedCost = this.charges.grant(now, pool, candidate)
    fairness.takeTurn(lane, chargedCost)
    pool.turns?.takeTurn(chargedCost)
    candidate.room = room
    room.hold(estimate, lane.band)
    this.growing.start(pool, candidate)
    pool.reading.start(now, candidate, room)
    pool.lasting.start(now, candidate)
    this.#moveHeld(pool, lane, 1, estimate.cost)
    pool.grantedCount++
    const lease: Lease = { id: ++this.#leaseId, ticketId: candidate.ticketId, replica: room.replica }
    this.#held.set(lease.id, candidate)
    if (lane.band === 'offline') room.engine.offlineTurns.set(lease.id, candidate)
    return lease
  }

  /** The ticket's first token has come: the next prompt may go to its replica. */
  begin(now: number, pool: PoolState, candidate: Candidate): void {
    const { counted, grantedAt } = candidate
    if (counted !== undefined && !candidate.hasBegun)
      this.#listener?.begun(now, counted, { grantedAt, replicaCount: pool.replicaParts })
    if (!candidate.hasBegun) {
      this.charges.begin(now, pool, candidate)
      this.growing.begin(pool, candidate)
    }
    this.#endPrefill(now, pool, candidate)
  }

  #endPrefill(now: number, pool: PoolState, candidate: Candidate): void {
    if (candidate.hasBegun || candidate.room === undefined) return
    candidate.hasBegun = true
    candidate.room.begin(candidate.estimate)
    if (pool.reading.end(now, candidate, candidate.room)) pool.endBars(pool.barred.all())
  }

  /** Output so far: tokens beyond the charge are charged, and KV room is held for tokens beyond what is booked. */
  progress(pool: PoolState, candidate: Candidate, outputTokens: number): void {
    this.charges.progress(pool, candidate, outputTokens)
    this.growing.progress(pool, candidate, outputTokens)
  }

  /** The lease was called off: it is on its way back. */
  yield(leaseId: number): void {
    const candidate = this.#held.get(leaseId)
    if (candidate?.room === undefined || candidate.isYielding) return
    candidate.isYielding = true
    candidate.room.engine.yieldingCount++
  }

  /** The attempt is over: the account is trued up, the room is free again, and the limit learns. */
  giveBack(now: number, pool: PoolState, candidate: Candidate, leaseId: number, measured: Measured): ReplicaRoom {
    const { lane, room, estimate } = candidate
    assert(room !== undefined, 'who holds a lease has room at a replica')
    this.#held.delete(leaseId)
    this.#returnedCount++
    candidate.state = 'gone'
    this.charges.end(pool, candidate, measured)
    this.#moveHeld(pool, lane, -1, estimate.cost)
    if (measured.ending !== 'cancelled') {
      const { firstTokenUs, meanTokenUs, tokenCount } = measured
      const isDropped = measured.ending !== 'finished'
      room.limit.observe(now, { firstTokenUs, meanTokenUs, tokenCount, isDropped }, room.ledger)
    }
    if (lane.band !== 'offline') lane.backlog.countForeground(now, -1)
    this.#endPrefill(now, pool, candidate)
    if (candidate.counted !== undefined) this.#listener?.ended(now, candidate.counted)
    this.growing.end(candidate)
    room.drop(estimate, lane.band, candidate.grownKvTokens)
    room.engine.offlineTurns.delete(leaseId)
    if (candidate.isYielding) room.engine.yieldingCount--
    if (pool.lasting.end(candidate)) pool.endBars(pool.barred.all())
    return room
  }

  reweigh(pools: Iterable<PoolState>, change: WeightChange): void {
    if (change.kind === 'org') this.#reweighOrg(change.orgId, change.weight)
    else if (change.kind === 'tenant') this.#reweighTenant(pools, change)
    for (const pool of pools) this.#listener?.reweighed(pool.id, pool.scale.changeOf(change))
  }

  /** The weights that count in one pool, where several gateways share it. The contract's stay. */
  rescale(pool: PoolState, factors: WeightFactors): void {
    for (const change of pool.rescale(factors)) this.#listener?.reweighed(pool.id, change)
  }

  #reweighOrg(orgId: string, weight: number | undefined): void {
    if (weight === undefined) this.#orgWeights.delete(orgId)
    else this.#orgWeights.set(orgId, weight)
    this.buffer.reweighOrg(orgId)
  }

  #reweighTenant(pools: Iterable<PoolState>, change: TreePlace & { readonly tenantId: string }): void {
    const { tenantId, orgId, weight } = change
    this.buffer.reweighTenant(tenantId, change)
    for (const pool of pools) {
      const backlog = pool.backlogs.get(tenantId)
      if (backlog === undefined) continue
      backlog.orgId = orgId
      backlog.weight = weight
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
    if (lane.band !== 'offline') backlog.foregroundQueuedCount += sign
    // The sums are exactly zero when nothing waits, whatever rounding left behind.
    backlog.queuedCost = backlog.queuedCount === 0 ? 0 : backlog.queuedCost + cost
    pool.queuedCost = pool.queuedCount === 0 ? 0 : pool.queuedCost + cost
  }

  #tellJoined(now: number, candidate: Candidate): void {
    if (this.#listener === undefined || !candidate.lane.isCounted) return
    const { lane, share, estimate } = candidate
    const cost = meanCostOf(estimate)
    candidate.counted = {
      poolId: lane.poolId,
      share: lane.scaled(share),
      band: lane.band,
      cost,
      shareUs: estimate.shareUs,
    }
    this.#listener.joined(now, candidate.counted)
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
        assert(room.own.held === (heldByRoom.get(room) ?? 0), 'L2: a ledger holds what leases say')
      }
    }
    assert(queuedCount === this.#waiting.size, 'the pools together hold every waiting ticket')
    assert(heldCount === this.#held.size, 'the pools together hold every lease')
  }
}
