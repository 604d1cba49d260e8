import type { Passage } from './corpus.ts'
import type { Segment } from './request.ts'

/**
 * A plan is a request on a rung: which model, how much of the context, how long an answer. Making a plan costs nothing;
 * admission makes several and takes the first that fits.
 */

/** A named step of reduced quality. `full` reduces nothing. */
export interface Rung {
  readonly name: string
  readonly depth: number
}

export const FULL_RUNG: Rung = { name: 'full', depth: 0 }

/** Predicted work, before the request runs. */
export interface Estimate {
  readonly promptTokens: number
  /** The least that an uncounted prompt can be; absent when `promptTokens` was counted. */
  readonly promptTokensMin?: number
  /** Part of the prompt tokens that an engine probably has cached. */
  readonly cachedTokens: number
  /** Median prediction: fairness charges it at dispatch. */
  readonly outputTokens: number
  /** Cautious prediction (P90): KV room is reserved for it. */
  readonly outputTokensHigh: number
  /** Most tokens that the answer is planned to have; absent where enough answers of its kind are known. */
  readonly outputTokensUnproven?: number
  /** Weighted tokens: the unit that fairness counts in. */
  readonly cost: number
  /** Mean of `cost`, where it is known to differ: what a queue of such tickets really takes. */
  readonly meanCost?: number
  /** Mean time of a full engine, in microseconds; absent where the engine's step times are unknown. */
  readonly shareUs?: number
  /** Time that the answer takes on an engine with its usual load. */
  readonly engineUs: number
}

/** The cost of a waiting ticket where the length of the queue matters, not its order. */
export const meanCostOf = (estimate: Estimate): number => estimate.meanCost ?? estimate.cost

/** From its turn to its last token, on the average and not in the usual case: as much more time as it is more work. */
export const meanEngineUsOf = (estimate: Estimate): number => (estimate.engineUs * meanCostOf(estimate)) / estimate.cost

export interface Plan {
  readonly rung: Rung
  readonly model: string
  /** The release of that model chosen for this request. */
  readonly releaseId: string
  readonly segments: readonly Segment[]
  /** For each planned segment, its index in the request; a trimmed segment is missing. */
  readonly keptSegments: readonly number[]
  /** Most tokens that each choice can have: the bound that is sent, else what the context leaves. */
  readonly outputTokensMax: number
  /** The bound that the engine is told: of the client, the rung or the operator; absent, the engine is told none. */
  readonly sentTokensMax?: number
  readonly estimate: Estimate
  /** How many passages may be added, and their tokens together; absent when none were asked for. */
  readonly passageRoom?: PassageRoom
  /** Passages found; absent until the search has ended. */
  readonly passages?: readonly Passage[]
}

export interface PassageRoom {
  readonly passagesMax: number
  readonly tokensMax: number
}

/** What a plan leaves out of its request, in numbers; a field is absent where nothing of its kind was left out. */
export interface Trim {
  readonly messages?: Kept
  /** Estimated prompt tokens, without passages. */
  readonly promptTokens?: Kept
  readonly passages?: Kept
  /** Most output tokens of each choice; `asked` is undefined for a client that set no limit. */
  readonly outputTokens?: { readonly kept: number; readonly asked: number | undefined }
}

interface Kept {
  readonly kept: number
  readonly asked: number
}
