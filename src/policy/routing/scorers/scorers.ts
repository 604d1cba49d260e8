import type { Scorer } from '../room-view.ts'
import { scoreDistance } from './distance.ts'
import { scoreLoad } from './load.ts'
import { scorePrefill } from './prefill.ts'
import { scoreQueue } from './queue.ts'
import { scoreSession } from './session.ts'

/**
 * Which scorers are there, and what is each worth? The one table that a new scorer joins: its file, and its line here.
 * Weights are configuration; 0 turns a scorer off, and it then costs nothing.
 */
export const SCORERS = {
  queue: scoreQueue,
  prefill: scorePrefill,
  distance: scoreDistance,
  load: scoreLoad,
  session: scoreSession,
} as const satisfies Readonly<Record<string, Scorer>>

export type ScorerName = keyof typeof SCORERS

export type ScorerWeights = Readonly<Record<ScorerName, number>>

export const WEIGHT_DEFAULTS: ScorerWeights = {
  queue: 1,
  prefill: 1,
  distance: 1,
  /** Between 0.003 and 0.01 both hits and the slowest first tokens are best (bench/experiments/placement.ts). */
  load: 0.005,
  /** Microseconds that a session's home is worth: as much as reading 400 tokens. */
  session: 20_000,
}

/** What a weight is of, for the settings page. */
export const WEIGHT_MEANINGS: Readonly<Record<ScorerName, string>> = {
  queue: 'Weight of the time until the replica has read the prompts that were placed there before.',
  prefill: 'Weight of the time to read the part of the prompt that the replica does not hold.',
  distance: 'Weight of the round trip to the replica\u2019s region.',
  load: 'Weight of the predicted time of everything in flight at the replica; spreads load over replicas that are otherwise equal.',
  session: 'Delay of the first token that is accepted to keep a session on its replica, in microseconds.',
}
