import type { EngineLimits } from '../../src/engine/engine-state.ts'
import type { SequenceSpec } from '../../src/engine/sequence.ts'
import type { StepLoad } from '../../src/engine/step-time.ts'

/** Batches of the engine's twin: who goes together and when, and what a step computes, read off from the rules. */
interface Waiting {
  readonly spec: SequenceSpec
  readonly arrivedAt: number
}

interface Rules {
  readonly limits: EngineLimits
  readonly speculation?: { readonly draftTokens: number }
}

/** As many as places and blocks hold to the end, in order of arrival. */
export function naiveBatch<T extends Waiting>(waiting: readonly T[], { limits, speculation }: Rules): T[] {
  const blocksOf = ({ spec }: T): number =>
    Math.ceil((spec.promptTokens + spec.outputTokens - 1 + (speculation?.draftTokens ?? 0)) / limits.blockTokens)
  const fits = (size: number): boolean =>
    size <= limits.sequencesMax &&
    waiting.slice(0, size).reduce((sum, one) => sum + blocksOf(one), 0) <= limits.blockCount
  let size = 0
  while (size < waiting.length && fits(size + 1)) size++
  return waiting.slice(0, size)
}

/** Undefined in continuous batching. */
export function naiveBatchDueAt(waiting: readonly Waiting[], rules: Rules): number | undefined {
  const { staticBatching, sequencesMax } = rules.limits
  const oldest = waiting[0]
  if (staticBatching === undefined || oldest === undefined) return undefined
  const size = naiveBatch(waiting, rules).length
  // Full by places when its last member came; full by memory when the first that does not fit came.
  const filler = size === sequencesMax ? waiting[size - 1] : waiting[size]
  return Math.min(oldest.arrivedAt + staticBatching.windowUs, filler?.arrivedAt ?? Number.POSITIVE_INFINITY)
}

/** What one step computes, from the contexts of those who decode and the pieces of prompts. */
export function naiveLoad(
  contexts: readonly number[],
  chunks: readonly { readonly tokens: number; readonly context: number }[],
  tokensEach: number,
): StepLoad {
  return {
    decodeCount: contexts.length,
    decodeTokens: contexts.length * tokensEach,
    contextSum: contexts.reduce((sum, context) => sum + context, 0),
    contextMax: Math.max(0, ...contexts),
    prefillTokens: chunks.reduce((sum, { tokens }) => sum + tokens, 0),
    chunkPairs: chunks.reduce((sum, { tokens }) => sum + (tokens * tokens) / 2, 0),
    contextPairs: chunks.reduce((sum, { tokens, context }) => sum + tokens * context, 0),
  }
}
