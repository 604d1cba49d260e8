import type { Replica } from '../../domain/fleet.ts'
import type { Estimate } from '../../domain/plan.ts'

/**
 * What does routing see of the replicas and of the ticket that it places? Narrow views: the dispatcher's rooms and
 * candidates have these shapes without knowing it, so routing needs nothing of the dispatcher and can be tested alone.
 */
export interface RoomView {
  readonly replica: Replica
  /** Order of addition: breaks ties the same way every time. */
  readonly ordinal: number
  /** A small number of its own, given to another when it is gone: for lists with one entry a replica. */
  readonly place: number
  /** KV tokens that its memory holds; Infinity when unknown. */
  readonly kvTokensMax: number
  readonly ledger: {
    /** Predicted time of everything in flight there, if each ran as usual. */
    readonly engineUs: number
    readonly sequences: number
    /** KV tokens that will be needed at most. */
    readonly kvTokens: number
  }
}

export interface PlacementAsk {
  readonly ticketId: string
  readonly estimate: Estimate
  /** Names of the prompt's leading blocks, chained and salted with the tenant. */
  readonly prefixHashes: readonly number[] | undefined
  /** Names the conversation it belongs to; undefined when the client did not say. */
  readonly sessionHash: number | undefined
}

/** What routing has learned of one replica. */
export interface Learned {
  /** Place in the prefix index. */
  readonly slot: number
  readonly distanceUs: number
  /** When the prompts placed there so far will have been read, as predicted. */
  prefillDoneAt: number
  /** How much slower than its prior the replica really is: 1 as expected, 2 twice as slow. */
  slowness: number
  /** It failed a moment ago: others first until then. */
  suspectUntil: number
}

/** One choice on its way: facts that every scorer may read, made once for all replicas. */
export interface Scene {
  now: number
  ask: PlacementAsk
  /** The least predicted work in flight among those with room. */
  lightestUs: number
  /** Prompt tokens that the replica which is being scored holds already; 0 when it lost its claim by load. */
  cachedTokens: number
  /** Whether the ticket's session was last seen at the replica which is being scored. */
  isSessionHome: boolean
  prefillUsPerToken: number
}

/**
 * How much later would the first token come, in microseconds, if this replica took it? One unit for all scorers, so
 * that their sum means something and a weight of 1 is face value. Negative is a preference.
 */
export type Scorer = (scene: Scene, room: RoomView, learned: Learned) => number

/** Would we rather not? A filter is a preference: where it leaves nobody, it is passed over. */
export type Filter = (scene: Scene, room: RoomView, learned: Learned) => boolean
