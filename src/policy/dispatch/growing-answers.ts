import { type HeapItem, IndexedHeap } from '../../base/indexed-heap.ts'
import type { Estimate } from '../../domain/plan.ts'
import { bookedOutputOf, isLongAnswer } from '../limits/booked-room.ts'
import type { Candidate } from './candidate.ts'
import type { PoolState } from './pool-state.ts'

/**
 * Which answers have written more than is booked for them?
 *
 * A long answer books its median length (`limits/booked-room.ts`) and grows when it passes that. How many tokens an answer
 * has is told only when it has passed its prediction, and of an answer that is not streamed it is never told. Between, the
 * pool's pace says it, as with charges (`charge-ahead.ts`): a heap holds the long answers by when they should reach what is
 * booked for them, and whoever is due has grown before turns are given. Growth only takes room, so a look that comes late
 * gives nothing away that it should have kept but the growth of that time, which the others' doubts cover.
 *
 * Bounds: one place in the heap for each lease of a long answer; `GROWTHS_MAX` a look. Cost: nothing for short answers;
 * O(log n) a growth, by a part of what is booked: an answer of ten times its prediction grows some seventy times.
 */
const GROWTHS_MAX = 64
/** Of what is booked of an answer, what it grows by at least. */
const GROWTH_RATIO = 1 / 32

/** A long answer's place in the heap. */
interface GrowingAnswer extends HeapItem {
  readonly candidate: Candidate
  readonly pool: PoolState
}

export class GrowingAnswers {
  readonly #blockTokens: number
  readonly #heap = new IndexedHeap<GrowingAnswer>()

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens
  }

  /** The ticket has its turn, and its room. */
  start(pool: PoolState, candidate: Candidate): void {
    if (!mayOutgrow(candidate.estimate)) return
    const growing: GrowingAnswer = { heapIndex: -1, sequence: candidate.sequence, candidate, pool }
    candidate.growing = growing
    this.#heap.push(growing, dueAt(pool, candidate))
  }

  /** Its first token has come. */
  begin(pool: PoolState, candidate: Candidate): void {
    if (candidate.growing !== undefined) this.#heap.update(candidate.growing as GrowingAnswer, dueAt(pool, candidate))
  }

  /** The answer has this many tokens, as told or by the pool's pace: room is held for those beyond what is booked. */
  progress(pool: PoolState, candidate: Candidate, outputTokens: number): void {
    const { room, estimate, grownKvTokens } = candidate
    const booked = bookedOutputOf(estimate) + grownKvTokens
    if (outputTokens <= booked || room === undefined) return
    const tokens = Math.max(outputTokens - booked, mayOutgrow(estimate) ? booked * GROWTH_RATIO : 0)
    const grown = Math.ceil(tokens / this.#blockTokens) * this.#blockTokens
    room.grow(estimate, grownKvTokens, grown)
    candidate.grownKvTokens += grown
    pool.refreshOpen(room)
  }

  /** Those that should have written more than is booked for them by now. */
  catchUp(now: number): void {
    for (let left = GROWTHS_MAX; left > 0; left--) {
      const at = this.#heap.peekKey()
      if (at === undefined || at > now) return
      const growing = this.#heap.peek() as GrowingAnswer
      const { pool, candidate } = growing
      this.progress(pool, candidate, 1 + Math.floor((now - candidate.decodesAt) / tokenUsOf(pool, candidate)))
      // The pace may have changed since it was found due.
      this.#heap.update(growing, Math.max(now + 1, dueAt(pool, candidate)))
    }
  }

  /** The attempt is over. */
  end(candidate: Candidate): void {
    if (candidate.growing === undefined) return
    this.#heap.remove(candidate.growing as GrowingAnswer)
    candidate.growing = undefined
  }
}

/** Long answers, and those of tenants whose answers are not known: the prior is short, and nobody may keep to it. */
const mayOutgrow = (estimate: Estimate): boolean =>
  estimate.outputTokensUnproven !== undefined || isLongAnswer(estimate)

const dueAt = (pool: PoolState, candidate: Candidate): number =>
  candidate.decodesAt + (bookedOutputOf(candidate.estimate) + candidate.grownKvTokens) * tokenUsOf(pool, candidate)

/** Until an answer has ended, the prediction's own pace counts. */
function tokenUsOf({ answers }: PoolState, { estimate }: Candidate): number {
  if (answers.tokenUs > 0) return answers.tokenUs
  return Math.max(1, estimate.engineUs / Math.max(1, estimate.outputTokens))
}
