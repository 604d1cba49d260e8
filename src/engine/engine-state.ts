import { BlockPool } from './block-pool.ts'
import type { DecodeSet } from './decode-set.ts'
import { PrefixCache } from './prefix-cache.ts'
import type { Sequence } from './sequence.ts'
import { SequenceList } from './sequence-list.ts'
import type { TimeAccount } from './time-account.ts'

/**
 * Everything an engine remembers between steps. `plan-step.ts` and `apply-step.ts` move it; `engine.ts` owns it.
 *
 * All three places are ordered by arrival, and everyone in `decodes` and `prefilling` arrived before everyone in
 * `waiting`: admission takes the head of the queue, preemption puts the last back there. Where no prompt is held back
 * (`longPrefillTokens`), everyone in `decodes` also arrived before everyone in `prefilling`.
 */
export interface EngineLimits {
  readonly sequencesMax: number
  /** Tokens computed in one step at most. */
  readonly tokenBudget: number
  /**
   * vLLM's `long_prefill_token_threshold`: a prompt gets at most this many tokens of a step, so that those behind it
   * begin beside it; and of the prompts longer than this one is read at a time (`max_long_partial_prefills` 1). Absent:
   * off, as in vLLM.
   */
  readonly longPrefillTokens?: number
  readonly blockCount: number
  readonly blockTokens: number
  /** Sequences that may wait; the next is refused. */
  readonly waitingMax?: number
  /** Tokens that one prefix hash names: a multiple of `blockTokens`, which it is by default. */
  readonly prefixUnitTokens?: number
  /** Static batches instead of continuous batching: nobody joins a batch that runs. */
  readonly staticBatching?: StaticBatching
}

export interface StaticBatching {
  /** Microseconds that an idle engine gathers; 0: whoever waits goes. */
  readonly windowUs: number
}

export interface EngineState {
  readonly limits: EngineLimits
  readonly unitTokens: number
  readonly cache: PrefixCache
  readonly pool: BlockPool
  readonly waiting: SequenceList
  /** Between steps at most one without `longPrefillTokens`: a second is admitted only when the first gets all it lacks. */
  readonly prefilling: Sequence[]
  readonly decodes: DecodeSet
  readonly counters: EngineCounters
  /** Whose the steps' time is. */
  readonly shares: TimeAccount
  /** Room for the sequences that a step ends; empty between steps. */
  readonly done: Sequence[]
}

/** Sums since the start, under the names that vLLM's metrics have. */
export interface EngineCounters {
  steps: number
  preemptions: number
  /** Tokens looked up in the prefix cache, and found there. */
  prefixQueries: number
  prefixHits: number
  /** Prompt tokens computed (recomputation included), and output tokens made. */
  promptTokens: number
  generationTokens: number
  /** Tokens of context that decode steps read, summed over steps and sequences. */
  contextTokens: number
  finished: number
  aborted: number
}

export function makeEngineState(
  limits: EngineLimits,
  shares: TimeAccount,
  makeDecodes: (unitBlocks: number) => DecodeSet,
): EngineState {
  const unitTokens = limits.prefixUnitTokens ?? limits.blockTokens
  const unitBlocks = unitTokens / limits.blockTokens
  const cache = new PrefixCache()
  return {
    limits,
    unitTokens,
    cache,
    pool: new BlockPool({ blockCount: limits.blockCount, unitBlocks, cache }),
    waiting: new SequenceList(),
    prefilling: [],
    decodes: makeDecodes(unitBlocks),
    shares,
    counters: {
      steps: 0,
      preemptions: 0,
      prefixQueries: 0,
      prefixHits: 0,
      promptTokens: 0,
      generationTokens: 0,
      contextTokens: 0,
      finished: 0,
      aborted: 0,
    },
    done: [],
  }
}

/** Every step reads the context of each member, which then is a token longer; a burst is one step at a time. */
export function countContext({ decodes, counters }: EngineState, steps: number): void {
  counters.contextTokens += steps * decodes.contextSum + (decodes.count * steps * (steps - 1)) / 2
}

/** Gives back all blocks of a sequence that is in no set. What has a name stays in the cache until it is evicted. */
export function releaseBlocks(state: EngineState, sequence: Sequence): void {
  nameComputedUnits(state, sequence)
  state.pool.give(sequence.ownBlocks)
  sequence.ownBlocks = 0
  // Deepest first, so that a chain is evicted from its end.
  for (let i = sequence.units.length - 1; i >= 0; i--) state.cache.release(sequence.units[i] as number)
  sequence.units.length = 0
}

/** Gives names to the units that are full and computed, so that others may share them. */
export function nameComputedUnits(state: EngineState, sequence: Sequence): void {
  const unitsFull = Math.min(sequence.prefixHashes.length, Math.floor(sequence.computedTokens / state.unitTokens))
  for (let i = sequence.units.length; i < unitsFull; i++) {
    const hash = sequence.prefixHashes[i] as number
    // Somebody computed the same at the same time: their copy has the name, ours stays our own (and later ones too).
    if (state.cache.find(sequence.salt, hash) !== undefined) return
    sequence.units.push(state.cache.name(sequence.salt, hash))
    sequence.ownBlocks -= state.pool.unitBlocks
  }
}
