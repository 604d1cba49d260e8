/**
 * What one gateway has of a pool that several gateways share, and what gateways tell each other about a pool. The words
 * that the dispatcher (which uses room) and the sharing policy (which divides it) have in common.
 */

/** Room that one gateway may use at a replica; Infinity where the gateway has the replica to itself. */
export interface RoomAllowance {
  readonly sequences: number
  readonly kvTokens: number
}

export const WHOLE_ROOM: RoomAllowance = Object.freeze({
  sequences: Number.POSITIVE_INFINITY,
  kvTokens: Number.POSITIVE_INFINITY,
})

/** What runs at a replica, as one gateway predicts it for its own turns. All are whole numbers that can be added up. */
export interface TurnsInFlight {
  readonly sequences: number
  readonly kvTokens: number
  readonly contextTokens: number
  readonly prefillMilli: number
  readonly prefillTokens: number
  readonly engineUs: number
}

export const NOTHING_IN_FLIGHT: TurnsInFlight = Object.freeze({
  sequences: 0,
  kvTokens: 0,
  contextTokens: 0,
  prefillMilli: 0,
  prefillTokens: 0,
  engineUs: 0,
})

export const turnsTogether = (a: TurnsInFlight, b: TurnsInFlight): TurnsInFlight => ({
  sequences: a.sequences + b.sequences,
  kvTokens: a.kvTokens + b.kvTokens,
  contextTokens: a.contextTokens + b.contextTokens,
  prefillMilli: a.prefillMilli + b.prefillMilli,
  prefillTokens: a.prefillTokens + b.prefillTokens,
  engineUs: a.engineUs + b.engineUs,
})

/** One replica as one gateway sees it: what the gateway has in flight there, and how much may run there in all. */
export interface ReplicaFigures {
  readonly replicaId: string
  readonly inFlight: TurnsInFlight
  readonly sequencesMax: number
  /** Infinity when unknown. */
  readonly kvTokensMax: number
}

/** What one key's lanes hold and have waiting at one gateway. */
export interface LaneFigures {
  readonly orgId: string
  /** Undefined: the org weighs as much as its tenants. */
  readonly orgWeight: number | undefined
  readonly tenantId: string
  readonly tenantWeight: number
  readonly keyId: string
  readonly keyWeight: number
  /** Turns that run, and tickets that wait in the interactive and the standard band. */
  readonly heldCount: number
  readonly waitingCount: number
  /** Tickets of the offline band that wait. */
  readonly offlineCount: number
  /** Of all that wait: cost, and the time that it will hold its slots. */
  readonly waitingCost: number
  readonly waitingUs: number
}

/** Work offered so far, refused or not, since the gateway began. */
export interface OfferedFigures {
  readonly online: number
  readonly offline: number
}

export interface PoolFigures {
  readonly offered?: OfferedFigures
  readonly replicas: readonly ReplicaFigures[]
  readonly lanes: readonly LaneFigures[]
}

/** By node of the fairness tree: what a weight is multiplied with here, above 0 and at most 1. Nodes left out keep theirs. */
export interface WeightFactors {
  readonly orgs: ReadonlyMap<string, number>
  readonly tenants: ReadonlyMap<string, number>
  readonly keys: ReadonlyMap<string, number>
}

const NONE: ReadonlyMap<string, number> = new Map()

export const NO_FACTORS: WeightFactors = Object.freeze({ orgs: NONE, tenants: NONE, keys: NONE })

export interface RoomShare {
  readonly allowance: RoomAllowance
  /** What the other gateways had in flight there when they last told. */
  readonly others: TurnsInFlight
}

/** This gateway's part of one pool, as of the last exchange. */
export interface PoolShare {
  readonly rooms: ReadonlyMap<string, RoomShare>
  readonly factors: WeightFactors
  /** The least part of the pool that this gateway counts on when it predicts waits. */
  readonly partMin: number
}
