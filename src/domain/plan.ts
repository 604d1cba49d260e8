import type { Passage } from './corpus.ts'
import type { Segment } from './request.ts'

/**
 * What exactly would we run? A plan is a request on a rung: which model, how much of its context, how long an answer.
 * Making one costs nothing; admission makes several and takes the first that fits.
 */

/** A named step of giving up quality. `full` gives up nothing. */
export interface Rung {
  readonly name: string
  readonly depth: number
}

export const FULL_RUNG: Rung = { name: 'full', depth: 0 }

/** Predicted work, before anything has run. */
export interface Estimate {
  readonly promptTokens: number
  /** Of those, tokens that an engine probably holds already. */
  readonly cachedTokens: number
  /** Median prediction: what fairness charges at dispatch. */
  readonly outputTokens: number
  /** Cautious prediction (P90): what KV room is held for. */
  readonly outputTokensHigh: number
  /** Weighted tokens: the unit that fairness counts in. */
  readonly cost: number
  /** The same on the average, where that is known to differ: what a queue of these really takes. */
  readonly meanCost?: number
  /** What it takes of a full engine's time on the average, in microseconds; absent where nobody knows. */
  readonly shareUs?: number
  /** How long the answer would take an engine that is otherwise as busy as usual. */
  readonly engineUs: number
}

/** What it is counted with in a queue whose length matters, and not its order. */
export const meanCostOf = (estimate: Estimate): number => estimate.meanCost ?? estimate.cost

export interface Plan {
  readonly rung: Rung
  readonly model: string
  /** The release of that model which was chosen for this request. */
  readonly releaseId: string
  readonly segments: readonly Segment[]
  /** For each planned segment, its index in the request: what was trimmed is what is missing. */
  readonly keptSegments: readonly number[]
  readonly outputTokensMax: number
  readonly estimate: Estimate
  /** How many passages may join, and how long they may be together; absent when none were asked for. */
  readonly passageRoom?: PassageRoom
  /** What was found; absent until it was. */
  readonly passages?: readonly Passage[]
}

export interface PassageRoom {
  readonly passagesMax: number
  readonly tokensMax: number
}
