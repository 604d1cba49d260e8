import type { Estimate } from '../../domain/plan.ts'
import type { Load } from './ledger.ts'

/**
 * How much may be in flight at a replica?
 *
 * The one interface of the limits. A limit sees the ledger's load and what is about to be added, and says whether it
 * still fits; it learns from what comes back. It keeps the queue here, where it is fair and can be cancelled, and not
 * inside the engine. An idle replica is never asked: one request is always allowed there (law L6), or a limit that is
 * too cautious could lock a pool up. KV memory is not a limit's business either: the replica's room checks it.
 */
export interface Limit {
  readonly name: LimitName
  /** Whether not even the smallest request would fit. Must agree with `fits`: full means that nothing fits. */
  isFull(load: Load): boolean
  /** `offline`: the turn is for work that may wait, which has a bound of its own where the speed is known. */
  fits(load: Load, estimate: Estimate, offline?: OfflineTerms): boolean
  /** 0 … 1: how much of what may be in flight is in flight, in sequences like those that are. */
  fullness(load: Load): number
  /** One attempt came back; `load` still has it. */
  observe(now: number, sample: LimitSample, load: Load): void
  view(): LimitView
}

export type LimitName = 'fixed' | 'aimd' | 'gradient' | 'reported'

export interface LimitView {
  /** Sequences allowed at once, as far as that is known as a number. */
  readonly sequencesMax: number
  readonly because: string
}

/**
 * How much room work that may wait may have beside the other. Filled up to the promise, an engine keeps it and still takes
 * four times as long for a token; the last quarter of offline work costs half of that.
 */
export interface OfflineTerms {
  /** Mean microseconds per output token up to which an offline turn is given; absent: nearly half of what is promised. */
  readonly interTokenUs?: number | undefined
  /** Share of a replica's KV memory that offline work holds at most. */
  readonly kvShare: number
}

/** What one attempt taught. */
export interface LimitSample {
  /** From grant to first token; undefined when none came. */
  readonly firstTokenUs: number | undefined
  /** Mean time between its output tokens; undefined when it had fewer than two. */
  readonly meanTokenUs: number | undefined
  /** Tokens that the mean is over; absent where nobody counted. */
  readonly tokenCount?: number | undefined
  /** The replica refused, was lost or timed out. */
  readonly isDropped: boolean
}
