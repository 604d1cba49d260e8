import type { HeapItem } from '../../base/indexed-heap.ts'
import type { Band } from '../../domain/tenant.ts'
import { Lane, type LaneName, Waiter, type WaiterPlace } from '../fairness/lane.ts'
import type { Offer } from './offer.ts'
import type { ReplicaRoom } from './replica-room.ts'

/** What one tenant has waiting and running at one pool: what admission asks about. Amounts in predicted cost. */
export interface BacklogView {
  readonly tenantId: string
  readonly weight: number
  readonly queuedCount: number
  readonly queuedCost: number
  readonly heldCount: number
  readonly heldCost: number
}

export class Backlog implements BacklogView {
  readonly tenantId: string
  weight: number
  queuedCount = 0
  queuedCost = 0
  heldCount = 0
  heldCost = 0

  constructor(tenantId: string, weight: number) {
    this.tenantId = tenantId
    this.weight = weight
  }
}

/** One tenant's part of the shared buffer. */
export interface BufferShare extends HeapItem {
  /** Among equals, whoever has had something queued for longer yields first. */
  sequence: number
  weight: number
  count: number
  readonly lanes: PoolLane[]
}

/** A lane as the dispatcher sees it: with its tenant's backlog and its place in the rule for big heads. */
export class PoolLane extends Lane {
  readonly backlog: Backlog
  heldCount = 0
  /** Sweeps of idle lanes that the pool had made when it was last used. */
  usedIn = 0
  /** Its tenant's part of the shared buffer; set by the buffer it is attached to. */
  bufferShare: BufferShare | undefined = undefined
  /** Its head had its turn and fitted nowhere: it is not asked until room has grown, and is owed the turn. */
  isOwed = false
  /** The head that was last passed over. */
  skippedHead: Waiter | undefined = undefined
  /** Turns that the pool had granted when that head was first passed over. */
  skippedSince = 0
  /** Heads that the pool had passed over before that one. */
  skippedAfter = 0
  /** Replicas that are kept free for it. */
  keptCount = 0

  constructor(name: LaneName, backlog: Backlog) {
    super(name)
    this.backlog = backlog
  }
}

/** A ticket from offer to release: first a place in a lane, then a lease on a replica. */
export class Candidate extends Waiter {
  declare readonly lane: PoolLane
  readonly prefixHashes: readonly number[] | undefined
  readonly sessionHash: number | undefined
  readonly avoidReplicaId: string | undefined
  room: ReplicaRoom | undefined = undefined
  /** Its first token has come. */
  hasBegun = false
  /** What fairness has been charged so far for this turn. */
  chargedCost = 0
  /** Output tokens that the charge covers. */
  chargedTokens = 0
  /** KV tokens held beyond what was predicted. */
  grownKvTokens = 0

  constructor(offer: Offer, place: CandidatePlace) {
    super(offer, place)
    this.prefixHashes = offer.prefixHashes
    this.sessionHash = offer.sessionHash
    this.avoidReplicaId = offer.avoidReplicaId
  }
}

export interface CandidatePlace extends WaiterPlace {
  readonly lane: PoolLane
}

/**
 * Told when a tenant's queued cost at a pool moves, inside the call that moves it; positional, because it is on the
 * path of every ticket. `weight` is the tenant's weight from here on; a change of weight alone comes with a delta of 0.
 */
export type BacklogObserver = (poolId: string, tenantId: string, weight: number, deltaCost: number, band: Band) => void
