import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { Tenant } from '../../domain/tenant.ts'
import type { BufferShare, PoolLane } from './candidate.ts'

/**
 * Who must yield when the shared queue is full?
 *
 * Longest queue drop (Suter, Lakshman, Stiliadis and Choudhury, 1998), by weight and by tenant: the queue is one buffer
 * of `queueRequestsMax` places for all, and the tenant with most tickets per weight gives one up. So a light tenant's arrival is never
 * refused because a heavy one has filled the buffer. By tenant and not by lane, or a thousand keys would be a
 * thousand short lanes. Inside that tenant the lowest band yields first, then the key with most tickets per weight,
 * and there the last in line.
 *
 * Deliberately not: it drops nobody itself; it counts in all pools together, because the memory is shared.
 *
 * Law L3. Worked example, room for 100: heavy (weight 1) has 90, light (weight 1) 5, gold (weight 10) 5. An arrival
 * of light or gold makes 101; heavy has most per weight, so heavy's last ticket is evicted. An arrival of heavy is
 * refused; so is one of light once both have 48, because a promise is not broken for no gain in fairness.
 */
export class SharedBuffer {
  readonly queueRequestsMax: number
  readonly #tenants = new Map<string, BufferShare>()
  /** Tenants with something queued, by tickets per weight, most first. */
  readonly #byLength = new IndexedHeap<BufferShare>()
  #sequence = 0
  #count = 0

  constructor(queueRequestsMax: number) {
    this.queueRequestsMax = queueRequestsMax
  }

  get count(): number {
    return this.#count
  }

  get isOver(): boolean {
    return this.#count > this.queueRequestsMax
  }

  /** A lane is made. */
  attach(lane: PoolLane): void {
    let share = this.#tenants.get(lane.tenantId)
    if (share === undefined) {
      share = { heapIndex: -1, sequence: 0, weight: lane.tenantWeight, count: 0, lanes: [] }
      this.#tenants.set(lane.tenantId, share)
    }
    share.lanes.push(lane)
    lane.bufferShare = share
  }

  /** A lane is forgotten; nothing waits in it. */
  detach(lane: PoolLane): void {
    const { lanes } = shareOf(lane)
    lanes.splice(lanes.indexOf(lane), 1)
    if (lanes.length === 0) this.#tenants.delete(lane.tenantId)
    lane.bufferShare = undefined
  }

  /** The lane got one more ticket. */
  admit(lane: PoolLane): void {
    const share = shareOf(lane)
    share.count++
    this.#count++
    if (share.count > 1) this.#byLength.update(share, keyOf(share))
    else {
      share.sequence = this.#sequence++
      this.#byLength.push(share, keyOf(share))
    }
  }

  /** One ticket has left the lane. */
  dismiss(lane: PoolLane): void {
    const share = shareOf(lane)
    share.count--
    this.#count--
    if (share.count > 0) this.#byLength.update(share, keyOf(share))
    else this.#byLength.remove(share)
  }

  reweigh(tenantId: string, weight: number): void {
    const share = this.#tenants.get(tenantId)
    if (share === undefined) return
    share.weight = weight
    if (share.count > 0) this.#byLength.update(share, keyOf(share))
  }

  /** The lane whose last ticket must go; among tenants with equally much, the arriving one's, if one arrives. */
  longest(arriving?: PoolLane): PoolLane | undefined {
    let top = this.#byLength.peek()
    const own = arriving?.bufferShare
    if (top !== undefined && own !== undefined && keyOf(own) <= keyOf(top)) top = own
    let longest: PoolLane | undefined
    for (const lane of top?.lanes ?? []) {
      if (lane.count > 0 && (longest === undefined || yieldsBefore(lane, longest))) longest = lane
    }
    return longest
  }

  /** Whether one more ticket of this tenant and band would have to go itself: `longest` with the arrival counted. */
  wouldRefuse(tenant: Tenant, bandRank: number): boolean {
    if (this.#count < this.queueRequestsMax) return false
    const own = this.#tenants.get(tenant.id)
    const ownKey = -((own?.count ?? 0) + 1) / (own?.weight ?? tenant.weight)
    const top = this.#byLength.peek()
    if (top !== undefined && top !== own && keyOf(top) < ownKey) return false
    for (const lane of own?.lanes ?? []) if (lane.count > 0 && lane.bandRank > bandRank) return false
    return true
  }

  assertInvariants(): void {
    let count = 0
    for (const share of this.#tenants.values()) {
      let queued = 0
      for (const lane of share.lanes) queued += lane.count
      assert(queued === share.count, 'the buffer counts what its lanes hold')
      count += queued
    }
    assert(count === this.#count && count <= this.queueRequestsMax, 'L3: the shared buffer is within its bound')
  }
}

/** Most per weight is smallest. */
function keyOf(share: BufferShare): number {
  return -share.count / share.weight
}

function shareOf(lane: PoolLane): BufferShare {
  return lane.bufferShare as BufferShare
}

function yieldsBefore(a: PoolLane, b: PoolLane): boolean {
  if (a.bandRank !== b.bandRank) return a.bandRank > b.bandRank
  return a.count * b.weight > b.count * a.weight
}
