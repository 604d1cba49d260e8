import type { Sequence } from './sequence.ts'
import type { SpeculationCounters } from './speculation.ts'

/**
 * The sequences that decode: they have said at least one token, and take part in every step until they are done,
 * preempted or aborted. Two kinds of set share this face: `SteadyDecodes`, one token a step, leaps over any number of
 * steps at a constant cost; `BurstDecodes`, several tokens a step by speculation, looks at each sequence.
 *
 * Calling order: `blocksForSteps` and perhaps `last` and `leave` (preemption) while planning; `beginStep` once blocks
 * are taken; `finishSteps` at the end of a stretch. `join` and `leave` at any time between (an abort may come while a
 * step runs).
 */
export interface DecodeSet {
  readonly count: number
  /** Tokens that the next step computes for the set. */
  readonly stepTokens: number
  /** Σ and maximum of the members' contexts in the next step: tokens known so far. */
  readonly contextSum: number
  readonly contextMax: number
  /** The earliest arrived, who is never preempted. */
  readonly first: Sequence | undefined
  /** The latest arrived, who is preempted first. */
  readonly last: Sequence | undefined
  /** Members that are reported every step. */
  readonly everyStepCount: number

  /** A sequence that has just computed all it knew and made one token more. It brings the blocks it holds. */
  join(sequence: Sequence): void
  /** Takes a member out and writes what it has come to (computed and generated tokens, blocks) into it. */
  leave(sequence: Sequence): void

  /** New blocks that the next `steps` steps need together; those after the running one, if one runs. */
  blocksForSteps(steps: number): number
  /** From here the blocks of the next step count as held. */
  beginStep(): void
  /**
   * Of a step that has begun and those after it: how many, up to `stepsMax`, until a member is done, `blocksFree` do
   * not suffice, or somebody must hear of the tokens.
   */
  leapSteps(blocksFree: number, stepsMax: number): number
  /**
   * Moves on by so many steps; the blocks of all of them have been taken. Members that are done have left and are
   * appended to `done`, in order of arrival. `isStepLeft`: the step after them has begun as well. Returns the number of
   * tokens made.
   */
  finishSteps(steps: number, isStepLeft: boolean, done: Sequence[]): number

  /** Output tokens made so far by a member. */
  generatedBy(sequence: Sequence): number
  /** Blocks held by a member, named or not. */
  blocksOf(sequence: Sequence): number
  members(): Iterable<Sequence>
  /** What speculation has come to, where there is any. */
  readonly counters?: SpeculationCounters
}
