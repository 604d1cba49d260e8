import type { EngineTime } from '../domain/engine-time.ts'
import type { Sequence } from './sequence.ts'

/** What the account of the steps' time hears of a sequence; `step-share.ts` keeps it. */
export interface TimeAccount {
  /** A sequence joins the decoding ones; the next step is its first. */
  join(sequence: Sequence): void
  /** A sequence leaves the decoding ones, for whatever reason. */
  leave(sequence: Sequence): void
  /** A sequence has ended: it is in no place any more. */
  ended(sequence: Sequence): void
  /** What a sequence has come to, when `leftRatio` of the running step is still to come. */
  timeOf(sequence: Sequence, leftRatio: number): EngineTime
}
