import type { Lease } from '../../domain/fleet.ts'
import type { NoPlace } from '../../domain/no-place.ts'
import type { Placement } from '../../domain/placement.ts'
import type { Estimate } from '../../domain/plan.ts'
import type { Band, Key, Tenant } from '../../domain/tenant.ts'

/**
 * What goes into the dispatcher and what comes out. Every effect carries its reason; the codes are low-cardinality,
 * and also metric labels.
 */
export interface Offer {
  readonly ticketId: string
  readonly poolId: string
  readonly tenant: Tenant
  readonly key: Key
  readonly band: Band
  /** The bid, already clamped to what the tenant may bid. */
  readonly bid: number
  readonly estimate: Estimate
  readonly arrivedAt: number
  /** The earliest of the request's, the tenant's and the platform's limit on waiting. */
  readonly expiresAt: number
  /** False while retrieval or screening runs: the ticket holds its place, and `ready` makes it eligible. */
  readonly isReady: boolean
  /** The ticket has its turn in this instant or is refused. Only for one that is ready. */
  readonly mayNotWait?: boolean | undefined
  /** Names of the prompt's leading blocks, for placers that look at prefixes. */
  readonly prefixHashes?: readonly number[]
  /** Names the conversation, for placers that keep one together. */
  readonly sessionHash?: number | undefined
  /** The replica that failed the first attempt: the second goes elsewhere where another is ready. */
  readonly avoidReplicaId?: string
}

/** What of an offer says whose place it takes and where in its lane. A `Request` is one. */
export type PlaceSeeker = Pick<Offer, 'tenant' | 'key' | 'band' | 'bid' | 'arrivedAt'>

/** Queued: from here the dispatcher ends the ticket's wait with one effect, unless it is withdrawn first. */
export type Offered =
  | { readonly kind: 'queued'; readonly effects: readonly Effect[] }
  | ({ readonly kind: 'refused'; readonly effects: readonly Effect[] } & NoPlace)

export type Effect = TurnGranted | Expired | Evicted

export interface TurnGranted {
  readonly kind: 'granted'
  readonly ticketId: string
  readonly lease: Lease
  readonly because: string
  readonly placement?: Placement | undefined
}

export interface Expired {
  readonly kind: 'expired'
  readonly ticketId: string
  readonly because: string
}

export interface Evicted {
  readonly kind: 'evicted'
  readonly ticketId: string
  readonly code: 'queue-full' | 'lane-full' | 'fits-no-replica'
  readonly because: string
}

export const NO_EFFECTS: readonly Effect[] = Object.freeze([])

/** What an attempt turned out to be, told when its lease goes back. */
export interface Measured {
  /** In the unit of `Estimate.cost`. 0 gives the whole charge back: nothing was served. */
  readonly cost: number
  /** `refused` and `lost` teach the limit that the replica has too much; `cancelled` teaches nothing. */
  readonly ending: 'finished' | 'refused' | 'lost' | 'cancelled'
  /** Microseconds from grant to first token; undefined when none came. */
  readonly firstTokenUs: number | undefined
  /** Mean microseconds between output tokens; undefined when there were fewer than two. */
  readonly meanTokenUs?: number | undefined
  /** Output tokens of all choices; absent where nobody counted. */
  readonly outputTokens?: number | undefined
  /** Tokens that the mean is over. */
  readonly tokenCount?: number | undefined
}
