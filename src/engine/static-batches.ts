import type { Instant } from '../base/clock.ts'
import type { EngineLimits, EngineState, StaticBatching } from './engine-state.ts'
import type { Sequence } from './sequence.ts'

/**
 * Which of those who wait run together, when nobody may join a batch that runs?
 *
 * Static batching, as servers did it before Orca (Yu et al., OSDI 2022): a batch is formed when the engine has nothing
 * to do, and the next one when the last answer of this one is done. A place whose answer has ended stays empty until
 * then. With a window (the fourth reference document's micro-batches, BATCH_TIMEOUT_MS) an idle engine gathers until the
 * oldest has waited that long or the batch is full; those who waited meanwhile for a batch to end have done so already.
 *
 *     window      ├──── batch 1 ─────────────────┤├──── batch 2 ──
 *     a ······    ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
 *      b ·····    ▓▓▓▓▓▓ (empty place)
 *              c ································· ▓▓▓▓▓▓▓
 *
 * A batch has at most `sequencesMax` members, in order of arrival, whose whole keys and values fit into the blocks
 * together: grouping by KV capacity. So nobody is preempted.
 *
 * Kinder than real static servers: the true lengths count, where a server reserves the longest allowed; an answer that
 * has ended is told at once and costs no more time, where a server pads it to the end. What continuous batching gains
 * here is what it gains from empty places alone.
 */

/** Blocks that a sequence of this length ends with; the last token is made but never computed, a draft is. */
export function blocksInAll(
  { promptTokens, outputTokens }: Pick<Sequence, 'promptTokens' | 'outputTokens'>,
  { blockTokens }: EngineLimits,
  draftTokens: number,
): number {
  return Math.ceil((promptTokens + outputTokens - 1 + draftTokens) / blockTokens)
}

/** When the batch that gathers may begin; undefined while a batch runs or nobody waits for one. */
export function batchDueAt(state: EngineState, { windowUs }: StaticBatching, draftTokens: number): Instant | undefined {
  const oldest = state.waiting.first
  if (oldest === undefined || !isBetweenBatches(state)) return undefined
  const { fullAt } = nextBatch(state, draftTokens)
  return Math.min(oldest.arrivedAt + windowUs, fullAt ?? Number.POSITIVE_INFINITY)
}

/** Marks the members of the next batch, if no batch runs. */
export function formBatch(state: EngineState, draftTokens: number): void {
  if (!isBetweenBatches(state)) return
  for (const sequence of nextBatch(state, draftTokens).members) sequence.isInBatch = true
}

function isBetweenBatches({ decodes, prefilling, waiting }: EngineState): boolean {
  return decodes.count === 0 && prefilling.length === 0 && waiting.first?.isInBatch === false
}

/** Those of the queue that go together, and since when they could not be more. */
function nextBatch(
  { waiting, limits }: EngineState,
  draftTokens: number,
): { readonly members: readonly Sequence[]; readonly fullAt: Instant | undefined } {
  const members: Sequence[] = []
  let blocks = 0
  for (const sequence of waiting) {
    blocks += blocksInAll(sequence, limits, draftTokens)
    if (blocks > limits.blockCount) return { members, fullAt: sequence.arrivedAt }
    members.push(sequence)
    if (members.length === limits.sequencesMax) return { members, fullAt: sequence.arrivedAt }
  }
  return { members, fullAt: undefined }
}
