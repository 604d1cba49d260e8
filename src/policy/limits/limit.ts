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
  fits(load: Load, estimate: Estimate): boolean
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
