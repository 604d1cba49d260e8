/**
 * A placement explains the choice of a replica: its predicted time to the first token, part by part, and how much worse
 * the next best replica was. The journal keeps the placement and `spillway explain` prints it.
 *
 * The sentence is one of a few constant strings, the rest are numbers, so that an explanation costs one small object.
 */
export interface Placement {
  /** Number of replicas with room. */
  readonly roomCount: number
  /** Number of replicas scored: fewer in a large pool, which is sampled. */
  readonly scoredCount: number
  /** Prompt tokens that the replica probably has cached. */
  readonly cachedTokens: number
  /** Weighted scores of the chosen replica, by scorer, in microseconds; their sum is the prediction. */
  readonly partsUs: Readonly<Record<string, number>>
  /**
   * How much longer the next best of the scored replicas would take, in microseconds; undefined when there was no
   * other.
   */
  readonly aheadUs: number | undefined
}

/** Where a prompt's beginning is held: at one of the replicas with room, only at others, or nowhere. */
export type WhereKnown = 'here' | 'elsewhere' | 'nowhere'
