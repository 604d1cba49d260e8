import type { Rung } from './plan.ts'
import type { Band } from './tenant.ts'

/**
 * What a rung takes away, as data. Terms are cumulative: a deeper rung states everything that it gives up, so that a
 * plan is made from one rung alone and a configuration file can be read line by line. Planning reads the first five,
 * admission the bands; nobody asks for a rung by name.
 */
export interface RungTerms extends Rung {
  /** Retrieve at most this many passages; undefined leaves what was asked for. */
  readonly passagesMax?: number | undefined
  /** Keep at most this share of the prompt (1 = all of it); system prompt and last turn stay whatever it says. */
  readonly contextRatioMax: number
  /** A prompt that is no longer than this is not trimmed: there is nothing to win. */
  readonly contextTokensFloor: number
  /** Answers are cut at this length; undefined leaves the client's own limit. */
  readonly outputTokensMax: number | undefined
  /** Let the model's smaller fallback answer. */
  readonly isFallbackUsed: boolean
  /** Bands that are refused on this rung. */
  readonly shedBands: readonly Band[]
}
