import type { HeapItem, IndexedHeap } from '../../base/indexed-heap.ts'
import { type SharePath, sharePathOf } from '../../domain/share-path.ts'
import type { Key, Tenant } from '../../domain/tenant.ts'
import { Lane, type LaneName, Waiter, type WaiterPlace } from '../fairness/lane.ts'
import type { QueuedPart } from './backlog-listener.ts'
import { ReadingTime } from './long-prompts.ts'
import type { Offer } from './offer.ts'
import type { PromiseGroup } from './promise-group.ts'
import type { ReplicaRoom } from './replica-room.ts'
import type { WeightScale } from './weight-scale.ts'

/** What one tenant has waiting and running at one pool. Amounts in predicted cost. */
export interface BacklogView {
  readonly tenantId: string
  readonly weight: number
  readonly queuedCount: number
  readonly queuedCost: number
  readonly heldCount: number
  readonly heldCost: number
}

export class TenantBacklog implements BacklogView {
  readonly tenantId: string
  orgId: string
  weight: number
  queuedCount = 0
  queuedCost = 0
  heldCount = 0
  heldCost = 0
  /** Tickets of the interactive and the standard band that wait or run. */
  foregroundCount = 0
  /** Of those, the ones that wait. */
  foregroundQueuedCount = 0
  /** When such a ticket last came or ended. */
  seenAt = Number.NEGATIVE_INFINITY
  /** Tenants with the same promise; undefined until the tenant has one. */
  group: PromiseGroup | undefined
  readonly readingTime = new ReadingTime()
  /** Lasting answers that run, and their part of the pool's room (`lasting-answers.ts`). */
  lastingCount = 0
  lastingRatio = 0

  constructor(tenantId: string, orgId: string, weight: number) {
    this.tenantId = tenantId
    this.orgId = orgId
    this.weight = weight
  }

  /** Something of the tenant waits or runs, or did within the time of its promise. */
  isActive(now: number): boolean {
    return this.foregroundCount > 0 || now - this.seenAt <= this.promiseUs
  }

  /** Microseconds within which the tenant is promised a first token. */
  get promiseUs(): number {
    return this.group?.promiseUs ?? Number.POSITIVE_INFINITY
  }

  join(group: PromiseGroup): void {
    if (this.foregroundCount > 0) {
      if (this.group !== undefined) this.group.atWorkCount--
      group.atWorkCount++
    }
    this.group = group
    group.see(this.seenAt, this)
  }

  countForeground(now: number, sign: 1 | -1): void {
    this.moveForeground(sign)
    this.seenAt = now
    this.group?.see(now, this)
  }

  /** As if the ticket had never come: it does not count as seen. */
  moveForeground(sign: 1 | -1): void {
    const wasAtWork = this.foregroundCount > 0
    this.foregroundCount += sign
    if (this.group !== undefined && wasAtWork !== this.foregroundCount > 0) this.group.atWorkCount += sign
  }
}

/** One tenant's part of the shared buffer. */
export interface BufferShare extends HeapItem {
  /** Among tenants with equally much per weight, the one that has had something queued for longer yields first. */
  sequence: number
  orgId: string
  weight: number
  count: number
  readonly lanes: PoolLane[]
  /** The org with a weight of its own among whose tenants it stands; undefined where it stands among all. */
  org: BufferOrg | undefined
}

/** The part of the shared buffer of an org with a weight of its own. */
export interface BufferOrg extends HeapItem {
  readonly id: string
  readonly weight: number
  /** What its tenants with something queued weigh together. */
  activeWeight: number
  /** These tenants, by tickets per weight, most first. */
  readonly byLength: IndexedHeap<BufferShare>
}

/** A lane as the dispatcher sees it: with its tenant's backlog and its place in the rule for big heads. */
export class PoolLane extends Lane {
  readonly backlog: TenantBacklog
  heldCount = 0
  /** Sweeps of idle lanes that the pool had made when this lane was last used. */
  usedIn = 0
  /** The tenant's part of the shared buffer; set by the buffer that the lane is attached to. */
  bufferShare: BufferShare | undefined = undefined
  /** The head had its turn and fitted nowhere: the lane is not asked until room has grown, and is owed the turn. */
  isOwed = false
  /** The head that was last passed over. */
  skippedHead: Waiter | undefined = undefined
  /** Turns that the pool had granted when `skippedHead` was first passed over. */
  skippedSince = 0
  /** Heads that the pool had passed over before `skippedHead`. */
  skippedAfter = 0
  /** Replicas that are kept free for the lane. */
  keptCount = 0
  /** The head that must wait until its tenant has reading time or room again; undefined for a lane that is not barred. */
  barredHead: Waiter | undefined = undefined
  /** False while the lane is barred: its tickets stand before nobody, and listeners do not count them. */
  isCounted = true
  /** Barred because of its lasting answers, not because of its long prompts. */
  isRoomless = false
  /** The key's weight by contract; `weight` is what the key weighs here, where several gateways share the pool. */
  keyWeight: number
  readonly #scale: WeightScale
  #tenant: Tenant | undefined
  #key: Key | undefined
  #share: SharePath | undefined

  constructor(name: LaneName, backlog: TenantBacklog, scale: WeightScale) {
    super({ ...name, keyWeight: name.keyWeight * scale.key(name.keyId) })
    this.backlog = backlog
    this.keyWeight = name.keyWeight
    this.#scale = scale
  }

  /** The path with the weights that count at this gateway. */
  scaled(share: SharePath): SharePath {
    return this.#scale.pathOf(share)
  }

  /**
   * The lane's path in the tree of shares: the same object until tenant or key are replaced by a configuration. The org's
   * weight is the one in force, as in the order of turns: a ticket that is offered again may bring an older one.
   */
  shareOf(tenant: Tenant, key: Key, orgWeight: number | undefined): SharePath {
    const isKnown = this.#tenant === tenant && this.#key === key && this.#share?.org.weight === orgWeight
    if (this.#share === undefined || !isKnown) {
      this.#tenant = tenant
      this.#key = key
      this.#share = { ...sharePathOf(tenant, key), org: { id: tenant.orgId, weight: orgWeight } }
    }
    return this.#share
  }
}

/** A ticket from offer to release: first a place in a lane, then a lease on a replica. */
export class Candidate extends Waiter {
  declare readonly lane: PoolLane
  readonly prefixHashes: readonly number[] | undefined
  readonly sessionHash: number | undefined
  readonly avoidReplicaId: string | undefined
  readonly share: SharePath
  /** How the listener counts the ticket; undefined where nothing listens. */
  counted: QueuedPart | undefined = undefined
  room: ReplicaRoom | undefined = undefined
  grantedAt = 0
  /** When the ticket's first token came, or should come. */
  decodesAt = 0
  /** Turns of others whose prompt a replica knew, which went first although it was this ticket's turn. */
  letByCount = 0
  /** The ticket's first token has come. */
  hasBegun = false
  /** The ticket's prompt is longer than a step of its replica. */
  isLong = false
  /** The time in which the ticket's prompt is read counts against its tenant's reading time. */
  isHindering = false
  /** Part of the pool's room that the ticket's lasting answer holds; 0 for an answer that is not lasting. */
  lastingRatio = 0
  /** What fairness has been charged so far for this turn. */
  chargedCost = 0
  /** Output tokens that the charge covers. */
  chargedTokens = 0
  /** The turn was called off for an online ticket, and is not yet back. */
  isYielding = false
  /** KV tokens held beyond what was booked at the grant. */
  grownKvTokens = 0
  /** Place among the long answers that run (`growing-answers.ts`); undefined for others. */
  growing: HeapItem | undefined = undefined

  constructor(offer: Offer, place: CandidatePlace) {
    super(offer, place)
    this.prefixHashes = offer.prefixHashes
    this.sessionHash = offer.sessionHash
    this.avoidReplicaId = offer.avoidReplicaId
    this.share = place.lane.shareOf(offer.tenant, offer.key, place.orgWeight)
  }
}

export interface CandidatePlace extends WaiterPlace {
  readonly lane: PoolLane
  readonly orgWeight: number | undefined
}
