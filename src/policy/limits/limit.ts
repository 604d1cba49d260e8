import type { Estimate } from '../../domain/plan.ts'
import type { Load } from './ledger.ts'

/**
 * How much may be in flight at a replica?
 *
 * The one interface of the limits. A limit sees the ledger's load and what is about to be added, and says whether it
 * still fits; it learns from what comes back. It keeps the queue here, where it is fair and can be cancelled, and not
 * inside the engine. An idle replica is never asked: one request is always allowed there (law L6), or a limit that is
 * too cautious could lock a pool up.
 */
export interface Limit {
  readonly name: LimitName
  /** Whether not even the smallest request would fit. Must agree with `fits`: full means that nothing fits. */
  isFull(load: Load): boolean
  fits(load: Load, estimate: Estimate): boolean
  /** One attempt came back. */
  observe(now: number, sample: LimitSample): void
  /** Sequences allowed at once; Infinity where the rule is not a count. */
  view(): LimitView
}

export type LimitName = 'fixed' | 'aimd' | 'gradient' | 'reported'

export interface LimitView {
  readonly sequencesMax: number
  readonly because: string
}

/** What one attempt taught: how long the first token took, how full the replica was, and whether it was refused. */
export interface LimitSample {
  /** From grant to first token; undefined when none came. */
  readonly firstTokenUs: number | undefined
  /** Sequences at the replica when the attempt ended, itself included. */
  readonly inFlight: number
  /** The replica refused, was lost or timed out. */
  readonly isDropped: boolean
}
