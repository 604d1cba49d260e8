import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { BufferShare, PoolLane } from './candidate.ts'

/**
 * Who must yield when the shared queue is full?
 *
 * Longest queue drop (Suter, Lakshman, Stiliadis and Choudhury, 1998), by weight and by tenant: MAX_QUEUE_SIZE is one
 * buffer for all, and the tenant with most tickets per weight gives one up. So a light tenant's arrival is never
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
  readonly depthMax: number
  readonly #tenants = new Map<string, BufferShare>()
  readonly #byLength = new IndexedHeap<BufferShare>(isLonger)
  #ordinal = 0
  #count = 0

  constructor(depthMax: number) {
    this.depthMax = depthMax
  }

  get count(): number {
    return this.#count
  }

  get isOver(): boolean {
    return this.#count > this.depthMax
  }

  /** The lane got one more ticket. */
  admit(lane: PoolLane): void {
    const share = lane.bufferShare ?? this.#shareOf(lane)
    if (lane.count === 1) share.lanes.add(lane)
    share.count++
    this.#count++
    this.#byLength.update(share)
  }

  /** One ticket has left the lane. */
  dismiss(lane: PoolLane): void {
    const share = lane.bufferShare
    assert(share !== undefined, 'who leaves the buffer was in it')
    share.count--
    this.#count--
    if (lane.count === 0) {
      share.lanes.delete(lane)
      lane.bufferShare = undefined
    }
    if (share.count > 0) this.#byLength.update(share)
    else {
      this.#byLength.remove(share)
      this.#tenants.delete(lane.tenantId)
    }
  }

  /** A tenant has a share as long as it has something queued, and a lane knows it as long as it has. */
  #shareOf(lane: PoolLane): BufferShare {
    let share = this.#tenants.get(lane.tenantId)
    if (share === undefined) {
      const { tenantId, tenantWeight } = lane
      share = { heapIndex: -1, tenantId, ordinal: this.#ordinal++, weight: tenantWeight, count: 0, lanes: new Set() }
      this.#tenants.set(tenantId, share)
      this.#byLength.push(share)
    }
    lane.bufferShare = share
    return share
  }

  reweigh(tenantId: string, weight: number): void {
    const share = this.#tenants.get(tenantId)
    if (share === undefined) return
    share.weight = weight
    this.#byLength.update(share)
  }

  /** The lane whose last ticket must go; among tenants with equally much, the arriving one's, if one is arriving. */
  longest(arriving?: PoolLane): PoolLane | undefined {
    let top = this.#byLength.peek()
    const own = arriving === undefined ? undefined : this.#tenants.get(arriving.tenantId)
    if (top !== undefined && own !== undefined && own.count * top.weight >= top.count * own.weight) top = own
    let longest: PoolLane | undefined
    for (const lane of top?.lanes ?? []) if (longest === undefined || yieldsBefore(lane, longest)) longest = lane
    return longest
  }

  assertInvariants(): void {
    let count = 0
    for (const share of this.#tenants.values()) {
      let queued = 0
      for (const lane of share.lanes) queued += lane.count
      assert(queued === share.count, 'the buffer counts what its lanes hold')
      count += queued
    }
    assert(count === this.#count && count <= this.depthMax, 'L3: the shared buffer is within its bound')
  }
}

function isLonger(a: BufferShare, b: BufferShare): boolean {
  const left = a.count * b.weight
  const right = b.count * a.weight
  return left > right || (left === right && a.ordinal < b.ordinal)
}

function yieldsBefore(a: PoolLane, b: PoolLane): boolean {
  if (a.bandRank !== b.bandRank) return a.bandRank > b.bandRank
  return a.count * b.weight > b.count * a.weight
}
