import { assert } from '../base/assert.ts'
import { type EngineState, nameComputedUnits, releaseBlocks } from './engine-state.ts'
import type { Sequence } from './sequence.ts'
import type { StepLoad } from './step-time.ts'

/**
 * Who runs in the next step, and with how many tokens?
 *
 * vLLM's scheduler (v1/core/sched/scheduler.py), first come first served, in three passes over one token budget:
 *
 *   1. every decoding sequence, one token each (or a draft more). Blocks short? The latest arrived is preempted: it
 *      gives back all it holds, goes to the head of the queue and will compute everything again.
 *   2. the sequences whose prompts are half done, with what is left of the budget: one, unless `longPrefillTokens` bounds
 *      what a prompt gets of a step. Blocks short? Again the latest arrived is preempted, perhaps itself.
 *   3. the queue, in order, while budget, places and blocks last. A head that does not fit holds up those behind it.
 *      A prompt is admitted only when all of it fits, though it takes its blocks chunk by chunk. Nobody is admitted in
 *      a step that had to preempt.
 *
 * What a prompt shares with the cache is not computed again; but its last token always is, for it makes the first one
 * of the answer.
 *
 * Example: budget 2,048, nine decode, a prompt of 3,500 arrives: it gets 2,039 tokens in this step and 1,461 in the
 * next, which leaves 578 of the second step for the prompt behind it. With `longPrefillTokens` 512 it gets 512 in each of
 * seven steps, and shorter prompts behind it begin in the rest of the first.
 *
 * Unlike vLLM, decoding sequences have their tokens before a prompt that was admitted earlier gets its chunk; the two
 * differ only where the budget is short.
 */
export interface StepPlan extends StepLoad {
  /** Prefill chunks: each sequence's `plannedTokens`. */
  readonly chunks: Sequence[]
  /** Whether the queue was looked at and its head, if any, cannot run before something else ends. */
  isQueueSettled: boolean
}

export function makeStepPlan(): StepPlan {
  return {
    decodeCount: 0,
    decodeTokens: 0,
    contextSum: 0,
    contextMax: 0,
    prefillTokens: 0,
    chunkPairs: 0,
    contextPairs: 0,
    chunks: [],
    isQueueSettled: false,
  }
}

/** Moves the state to where the step can run, and writes what runs into `plan`. */
export function planStep(state: EngineState, plan: StepPlan): void {
  const preemptionsBefore = state.counters.preemptions
  plan.chunks.length = 0
  plan.prefillTokens = 0
  plan.chunkPairs = 0
  plan.contextPairs = 0

  makeRoom(state)
  const decodes = state.decodes
  plan.decodeCount = decodes.count
  plan.decodeTokens = decodes.stepTokens
  plan.contextSum = decodes.contextSum
  plan.contextMax = decodes.contextMax

  continuePrefill(state, plan)
  const isPreempting = state.counters.preemptions > preemptionsBefore
  plan.isQueueSettled = !isPreempting
  if (!isPreempting) admitFromQueue(state, plan)
}

/** Everyone that runs has the blocks of this step, or the latest arrived are preempted until the others have. */
function makeRoom(state: EngineState): void {
  const { decodes, pool } = state
  while (decodes.blocksForSteps(1) + blocksOfChunks(state) > pool.freeBlocks) preempt(state, latestOf(state))
  if (decodes.count === 0) return
  pool.take(decodes.blocksForSteps(1))
  decodes.beginStep()
}

function latestOf({ prefilling, decodes }: EngineState): Sequence {
  const reading = prefilling.at(-1)
  const decoding = decodes.last
  assert(prefilling.length + decodes.count > 1, 'the oldest sequence fits alone')
  if (reading === undefined || decoding === undefined) return (reading ?? decoding) as Sequence
  return reading.ordinal > decoding.ordinal ? reading : decoding
}

/** Blocks that the next chunks of the half-read prompts need together. */
function blocksOfChunks(state: EngineState): number {
  let blocks = 0
  let budget = state.limits.tokenBudget - state.decodes.stepTokens
  for (const sequence of state.prefilling) {
    const tokens = chunkOf(state, sequence, budget)
    blocks += blocksToReach(state, sequence, sequence.computedTokens + tokens)
    budget -= tokens
  }
  return blocks
}

function chunkOf({ limits }: EngineState, sequence: Sequence, budget: number): number {
  const { longPrefillTokens = Number.POSITIVE_INFINITY } = limits
  return Math.min(sequence.knownTokens - sequence.computedTokens, longPrefillTokens, budget)
}

function continuePrefill(state: EngineState, plan: StepPlan): void {
  for (const sequence of state.prefilling) {
    const tokens = chunkOf(state, sequence, state.limits.tokenBudget - plan.decodeTokens - plan.prefillTokens)
    if (tokens > 0) addChunk(state, plan, sequence, tokens)
  }
}

function admitFromQueue(state: EngineState, plan: StepPlan): void {
  const { waiting, prefilling, decodes, limits } = state
  for (let head = waiting.first; head !== undefined; head = waiting.first) {
    const budget = limits.tokenBudget - plan.decodeTokens - plan.prefillTokens
    if (budget === 0 || decodes.count + prefilling.length >= limits.sequencesMax) return
    if (limits.staticBatching !== undefined && !head.isInBatch) return
    if (isHeldBack(state, head) || !takeCachedUnits(state, head)) return
    waiting.remove(head)
    head.place = 'prefilling'
    prefilling.push(head)
    addChunk(state, plan, head, chunkOf(state, head, budget))
  }
}

/** Of the prompts longer than the threshold, one is read at a time. */
function isHeldBack({ limits, prefilling }: EngineState, head: Sequence): boolean {
  const { longPrefillTokens = Number.POSITIVE_INFINITY } = limits
  if (head.knownTokens <= longPrefillTokens) return false
  return prefilling.some((one) => one.knownTokens > longPrefillTokens && one.computedTokens < one.knownTokens)
}

/** Holds the cached units at the head of what a sequence knows; false, and nothing held, if the rest does not fit. */
function takeCachedUnits(state: EngineState, sequence: Sequence): boolean {
  const { cache, pool, unitTokens, limits, counters } = state
  const hashes = sequence.prefixHashes
  const unitsMax = Math.min(hashes.length, Math.floor((sequence.knownTokens - 1) / unitTokens))
  const units = sequence.units
  let idleUnits = 0
  while (units.length < unitsMax) {
    const unit = cache.find(sequence.salt, hashes[units.length] as number)
    if (unit === undefined) break
    if (cache.isIdle(unit)) idleUnits++
    units.push(unit)
  }
  const blocks = Math.ceil(sequence.knownTokens / limits.blockTokens) - units.length * pool.unitBlocks
  if (blocks > pool.freeBlocks - idleUnits * pool.unitBlocks) {
    units.length = 0
    return false
  }
  for (const unit of units) cache.hold(unit)
  sequence.computedTokens = units.length * unitTokens
  if (hashes.length > 0) {
    counters.prefixQueries += sequence.knownTokens
    counters.prefixHits += sequence.computedTokens
  }
  if (sequence.cachedTokens < 0) sequence.cachedTokens = sequence.computedTokens
  return true
}

function addChunk(state: EngineState, plan: StepPlan, sequence: Sequence, tokens: number): void {
  const blocks = blocksToReach(state, sequence, sequence.computedTokens + tokens)
  state.pool.take(blocks)
  sequence.ownBlocks += blocks
  sequence.plannedTokens = tokens
  plan.chunks.push(sequence)
  plan.prefillTokens += tokens
  plan.chunkPairs += (tokens * tokens) / 2
  plan.contextPairs += tokens * sequence.computedTokens
  sequence.computedTokens += tokens
  // Named before they are computed, as in vLLM: within a step the keys of a block are written before they are read.
  if (sequence.prefixHashes.length > 0) nameComputedUnits(state, sequence)
}

function blocksToReach(state: EngineState, sequence: Sequence, tokens: number): number {
  const held = sequence.ownBlocks + sequence.units.length * state.pool.unitBlocks
  return Math.ceil(tokens / state.limits.blockTokens) - held
}

function preempt(state: EngineState, sequence: Sequence): void {
  if (sequence.place === 'decoding') {
    state.decodes.leave(sequence)
    state.shares.leave(sequence)
  } else state.prefilling.splice(state.prefilling.indexOf(sequence), 1)
  releaseBlocks(state, sequence)
  sequence.reachedTokens = Math.max(sequence.reachedTokens, sequence.computedTokens)
  sequence.computedTokens = 0
  sequence.place = 'waiting'
  sequence.preemptions++
  state.waiting.pushFirst(sequence)
  state.counters.preemptions++
}
