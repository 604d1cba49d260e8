/**
 * Why there? What a placement says of itself: the predicted time to the first token at the replica that was chosen, part
 * by part, and how much worse the next best would have been. The journal keeps it and `spillway explain` tells it.
 *
 * The sentence is one of a few constant strings, the rest are numbers: saying why costs one small object.
 */
export interface Placement {
  /** Replicas that had room. */
  readonly roomCount: number
  /** Replicas that were scored: fewer in a large pool, which is sampled. */
  readonly scoredCount: number
  /** Prompt tokens that the replica is thought to hold already. */
  readonly cachedTokens: number
  /** The weighted parts of its score, by scorer, in microseconds; they add up to the prediction. */
  readonly partsUs: Readonly<Record<string, number>>
  /** What the next best of those scored would have taken longer, in microseconds; undefined when it was alone. */
  readonly aheadUs: number | undefined
}
