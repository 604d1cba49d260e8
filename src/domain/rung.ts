import type { Rung } from './plan.ts'
import type { Band } from './tenant.ts'

/**
 * The terms of a rung, as data. Terms are cumulative: a deeper rung states everything that it reduces, so that a plan
 * is made from one rung alone and a configuration file can be read line by line. Planning reads the first five,
 * admission the bands; no request asks for a rung by name.
 */
export interface RungTerms extends Rung {
  /** Retrieve at most this many passages; undefined keeps the requested number. */
  readonly passagesMax?: number | undefined
  /** Keep at most this share of the prompt (1 = all of it). System prompt and last turn are always kept. */
  readonly contextRatioMax: number
  /** A prompt up to this length is not trimmed: trimming it saves too little. */
  readonly contextTokensFloor: number
  /** Answers are cut at this length; undefined keeps the client's own limit. */
  readonly outputTokensMax: number | undefined
  /** The model's smaller fallback answers. */
  readonly isFallbackUsed: boolean
  /** Bands that are refused on this rung. */
  readonly shedBands: readonly Band[]
}
