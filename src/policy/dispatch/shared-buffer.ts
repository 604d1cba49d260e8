import { assert } from '../../base/assert.ts'
import { IndexedHeap } from '../../base/indexed-heap.ts'
import type { Tenant } from '../../domain/tenant.ts'
import { type OrgWeights, type TreePlace, weightAmongAll } from '../fairness/tree-share.ts'
import type { BufferOrg, BufferShare, PoolLane } from './candidate.ts'

/**
 * Who must yield when the shared queue is full?
 *
 * Longest queue drop (Suter, Lakshman, Stiliadis and Choudhury, 1998), by weight and by tenant: the queue is one buffer
 * of `queueRequestsMax` places for all, and the tenant with most tickets per weight gives one up. So a light tenant's arrival is never
 * refused because a heavy one has filled the buffer. By tenant and not by lane, or a thousand keys would be a
 * thousand short lanes. A tenant's weight is its weight among all tenants that have something queued
 * (`weightAmongAll`): an org with a weight of its own and a thousand tenants does not fill the buffer either. Its tenants
 * stand in an order of their own, and the longest of them stands for the org among all. Inside that tenant the lowest band yields first, then the key with most tickets per weight,
 * and there the last in line.
 *
 * Deliberately not: it drops nobody itself; it counts in all pools together, because the memory is shared.
 *
 * Law L3. Worked example, room for 100: heavy (weight 1) has 90, light (weight 1) 5, gold (weight 10) 5. An arrival
 * of light or gold makes 101; heavy has most per weight, so heavy's last ticket is evicted. An arrival of heavy is
 * refused; so is one of light once both have 48, because a promise is not broken for no gain in fairness. Were light's and
 * nine siblings' org to weigh 1 together, each would weigh a tenth, and one with 10 would have more than heavy's 90.
 */
export class SharedBuffer {
  readonly queueRequestsMax: number
  readonly #orgWeights: OrgWeights
  readonly #tenants = new Map<string, BufferShare>()
  /** Orgs with a weight of their own and something queued. */
  readonly #orgs = new Map<string, BufferOrg>()
  /** These orgs, and the tenants of all others with something queued, by tickets per weight, most first. */
  readonly #byLength = new IndexedHeap<BufferShare | BufferOrg>()
  #sequence = 0
  #count = 0

  constructor(queueRequestsMax: number, orgWeights: OrgWeights) {
    this.queueRequestsMax = queueRequestsMax
    this.#orgWeights = orgWeights
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
      const { orgId, tenantWeight: weight } = lane
      share = { heapIndex: -1, sequence: 0, orgId, weight, count: 0, lanes: [], org: undefined }
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
    if (share.count > 1) this.#refresh(share)
    else {
      share.sequence = this.#sequence++
      this.#enter(share)
    }
  }

  /** One ticket has left the lane. */
  dismiss(lane: PoolLane): void {
    const share = shareOf(lane)
    share.count--
    this.#count--
    if (share.count > 0) this.#refresh(share)
    else this.#leave(share)
  }

  reweighTenant(tenantId: string, { orgId, weight }: TreePlace): void {
    const share = this.#tenants.get(tenantId)
    if (share === undefined) return
    if (share.count > 0) this.#leave(share)
    share.orgId = orgId
    share.weight = weight
    if (share.count > 0) this.#enter(share)
  }

  /** The org has another weight, or none of its own any more. O(tenants), when settings change. */
  reweighOrg(orgId: string): void {
    const queued = [...this.#tenants.values()].filter((share) => share.orgId === orgId && share.count > 0)
    for (const share of queued) this.#leave(share)
    for (const share of queued) this.#enter(share)
  }

  /** The lane whose last ticket must go; among tenants with equally much, the arriving one's, if one arrives. */
  longest(arriving?: PoolLane): PoolLane | undefined {
    const first = this.#byLength.peek()
    let top = first !== undefined && 'byLength' in first ? first.byLength.peek() : first
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
    const { orgId, weight } = own ?? tenant
    const org = this.#orgs.get(orgId)
    const orgWeight = this.#orgWeights.get(orgId)
    const isNew = (own?.count ?? 0) === 0
    const activeWeight = (org?.activeWeight ?? 0) + (isNew ? weight : 0)
    const keyWith = (count: number, among: number): number => -count / weightAmongAll(among, orgWeight, activeWeight)
    const ownKey = keyWith((own?.count ?? 0) + 1, weight)
    const top = this.#byLength.peek()
    if (top !== undefined && top !== own && top !== org && (this.#byLength.peekKey() as number) < ownKey) return false
    const sibling = org?.byLength.peek()
    if (sibling !== undefined && sibling !== own && keyWith(sibling.count, sibling.weight) < ownKey) return false
    for (const lane of own?.lanes ?? []) if (lane.count > 0 && lane.bandRank > bandRank) return false
    return true
  }

  #enter(share: BufferShare): void {
    const weight = this.#orgWeights.get(share.orgId)
    if (weight === undefined) {
      this.#byLength.push(share, keyOf(share))
      return
    }
    const org = this.#orgs.get(share.orgId) ?? this.#makeOrg(share.orgId, weight)
    share.org = org
    org.activeWeight += share.weight
    org.byLength.push(share, -share.count / share.weight)
    if (org.heapIndex < 0) this.#byLength.push(org, orgKeyOf(org))
    else this.#byLength.update(org, orgKeyOf(org))
  }

  #refresh(share: BufferShare): void {
    const { org } = share
    if (org === undefined) this.#byLength.update(share, keyOf(share))
    else {
      org.byLength.update(share, -share.count / share.weight)
      this.#byLength.update(org, orgKeyOf(org))
    }
  }

  #leave(share: BufferShare): void {
    const { org } = share
    if (org === undefined) {
      this.#byLength.remove(share)
      return
    }
    share.org = undefined
    org.byLength.remove(share)
    org.activeWeight -= share.weight
    if (org.byLength.size > 0) this.#byLength.update(org, orgKeyOf(org))
    else {
      this.#byLength.remove(org)
      this.#orgs.delete(org.id)
    }
  }

  #makeOrg(id: string, weight: number): BufferOrg {
    const sequence = this.#sequence++
    const org = { heapIndex: -1, sequence, id, weight, activeWeight: 0, byLength: new IndexedHeap<BufferShare>() }
    this.#orgs.set(id, org)
    return org
  }

  assertInvariants(): void {
    let count = 0
    for (const share of this.#tenants.values()) {
      let queued = 0
      for (const lane of share.lanes) queued += lane.count
      assert(queued === share.count, 'the buffer counts what its lanes hold')
      count += queued
    }
    for (const org of this.#orgs.values()) {
      const weights = [...this.#tenants.values()].map((share) => (share.org === org ? share.weight : 0))
      const activeWeight = weights.reduce((sum, weight) => sum + weight, 0)
      assert(Math.abs(activeWeight - org.activeWeight) <= 1e-6 * activeWeight, 'an org weighs its queued tenants')
    }
    assert(count === this.#count && count <= this.queueRequestsMax, 'L3: the shared buffer is within its bound')
  }
}

/** Most per weight among all is smallest. */
function keyOf({ count, weight, org }: BufferShare): number {
  return -count / (org === undefined ? weight : weightAmongAll(weight, org.weight, org.activeWeight))
}

/** Of its longest tenant: the org has at least one. */
function orgKeyOf({ byLength }: BufferOrg): number {
  return keyOf(byLength.peek() as BufferShare)
}

function shareOf(lane: PoolLane): BufferShare {
  return lane.bufferShare as BufferShare
}

function yieldsBefore(a: PoolLane, b: PoolLane): boolean {
  if (a.bandRank !== b.bandRank) return a.bandRank > b.bandRank
  return a.count * b.weight > b.count * a.weight
}
