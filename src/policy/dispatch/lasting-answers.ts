import { type Estimate, meanCostOf } from '../../domain/plan.ts'
import { type OrgWeights, sharesAmong } from '../fairness/tree-share.ts'
import { isLongAnswer, kvTokensOf } from '../limits/booked-room.ts'
import { type ActivePromises, activeBeside } from './active-tenants.ts'
import type { Candidate, TenantBacklog } from './candidate.ts'
import type { ReplicaRoom } from './replica-room.ts'

/**
 * How much of a pool's room may be taken for a long time?
 *
 * An answer of 8,000 tokens keeps its memory for a minute or more, and no turn takes the memory back. A tenant that asks
 * for many of them fills every replica in the seconds in which no other tenant happens to wait: the order of turns is
 * fair, and still the others find no room until those answers end. So room is left for them before they come:
 *
 *   - An answer is *lasting* when it may hold its room for more than `promiseTimes` of the time in which another active
 *     tenant is promised its first token. For a tenant whose answers of this kind are not known yet, what it may write
 *     at most counts: after the first minute, when they are known, the room would be gone.
 *   - Each active tenant has `keptRatio` of its share of the room kept from the lasting answers of tenants that hold
 *     more than their own shares. What its own lasting answers hold counts towards it.
 *
 * A tenant over that bound is barred, as with prompts that take long to read (`long-prompts.ts`): its lane leaves the
 * order and is owed nothing. A tenant within its share, one that holds no lasting answer, and one that is alone are never
 * barred. Room is counted in parts of the pool's: the larger of the answer's part of all KV memory and its part of all
 * sequences that the limits allow.
 *
 * Deliberately not: no answer is interrupted; an answer that outgrows what its tenant's earlier answers were like is
 * not lasting.
 *
 * Laws: L6 as amended. No starvation: a bar ends after `recheckUs`, and when a lasting answer ends.
 *
 * Worked example: three active tenants of equal weight, one asks for long answers. Two thirds of the room are others'
 * shares, of which half is kept: lasting answers get two thirds. With a hundred active tenants they get half.
 */
export const LASTING_ANSWER_DEFAULTS = {
  /** Of the tightest promise of another active tenant. Twenty: answers of an ordinary chat end well before. */
  promiseTimes: 20,
  /** Of a share. Half: the tenants that ask for long answers lose at most half of what they would have alone. */
  keptRatio: 0.5,
  /** Microseconds after which a barred lane is asked again: other tenants may have gone, or replicas come. */
  recheckUs: 1_000_000,
} as const

interface RoomyPool {
  readonly rooms: ReadonlyMap<string, ReplicaRoom>
  readonly backlogs: ReadonlyMap<string, TenantBacklog>
  readonly promises: ActivePromises
  readonly orgWeights: OrgWeights
}

export class LastingAnswers {
  readonly #pool: RoomyPool
  /** Part of the pool's room that lasting answers hold; exactly 0 when there is none. */
  #heldRatio = 0
  #heldCount = 0

  constructor(pool: RoomyPool) {
    this.#pool = pool
  }

  /** Until when the head must leave the room to others; undefined when it need not. */
  barredUntil(now: number, head: Pick<Candidate, 'estimate' | 'lane'>): number | undefined {
    const own = head.lane.backlog
    if (own.lastingCount === 0 || !this.#isLasting(now, head)) return undefined
    const addedRatio = this.#roomRatio(head.estimate)
    const active = activeBeside(now, own, this.#pool.backlogs.values())
    const [ownShare = 1, ...shares] = sharesAmong(active, this.#pool.orgWeights)
    if (own.lastingRatio + addedRatio <= ownShare + ROUNDING) return undefined
    let keptRatio = 0
    for (const [i, share] of shares.entries()) {
      const { lastingRatio } = active[i + 1] as TenantBacklog
      keptRatio += Math.max(0, share * LASTING_ANSWER_DEFAULTS.keptRatio - lastingRatio)
    }
    const isOver = this.#heldRatio + addedRatio + keptRatio > 1 + ROUNDING
    return isOver ? now + LASTING_ANSWER_DEFAULTS.recheckUs : undefined
  }

  start(now: number, candidate: Candidate): void {
    if (!this.#isLasting(now, candidate)) return
    candidate.lastingRatio = this.#roomRatio(candidate.estimate)
    this.#move(candidate, 1)
  }

  /** True when the answer was lasting: lanes that are barred may go now. */
  end(candidate: Candidate): boolean {
    if (candidate.lastingRatio === 0) return false
    this.#move(candidate, -1)
    candidate.lastingRatio = 0
    return true
  }

  #move({ lane: { backlog }, lastingRatio }: Candidate, sign: 1 | -1): void {
    backlog.lastingCount += sign
    this.#heldCount += sign
    // The sums are exactly zero when nothing is held, whatever rounding left behind.
    backlog.lastingRatio = backlog.lastingCount === 0 ? 0 : backlog.lastingRatio + sign * lastingRatio
    this.#heldRatio = this.#heldCount === 0 ? 0 : this.#heldRatio + sign * lastingRatio
  }

  #isLasting(now: number, { estimate, lane }: Pick<Candidate, 'estimate' | 'lane'>): boolean {
    if (lane.band === 'offline') return false
    const longestUs = estimate.engineUs * Math.max(1, outputTokensAtMost(estimate) / Math.max(1, estimate.outputTokens))
    if (longestUs <= SHORTEST_LASTING_US) return false
    return longestUs > this.#pool.promises.tightestBeside(now, lane.backlog) * LASTING_ANSWER_DEFAULTS.promiseTimes
  }

  /** O(replicas of the pool): asked only for lasting answers. */
  #roomRatio(estimate: Estimate): number {
    let kvTokens = 0
    let sequences = 0
    for (const room of this.#pool.rooms.values()) {
      if (!room.isReady) continue
      kvTokens += room.kvTokensMax
      sequences += Math.min(room.allowance, room.limit.view().sequencesMax)
    }
    const neededTokens = kvTokensOf({ ...estimate, outputTokensHigh: outputTokensHeld(estimate) })
    return Math.min(1, Math.max(neededTokens / Math.max(1, kvTokens), 1 / Math.max(1, sequences)))
  }
}

/** Sums of a few hundred parts of the room are this exact. */
const ROUNDING = 1e-9
/** Microseconds. Shorter answers are never lasting. */
const SHORTEST_LASTING_US = 2_000_000

const outputTokensAtMost = ({ outputTokensHigh, outputTokensUnproven }: Estimate): number =>
  outputTokensUnproven ?? outputTokensHigh

/**
 * Where less than the cautious prediction is booked for each (`limits/booked-room.ts`), many such answers hold about their
 * mean. Halfway from there to the cautious prediction: with the mean alone, tenants of long answers took so much of an
 * overloaded pool that a tenth fewer requests were answered in time; with the prediction, room at capacity stayed unused.
 */
function outputTokensHeld(estimate: Estimate): number {
  const { outputTokens, outputTokensHigh, cost } = estimate
  if (estimate.outputTokensUnproven !== undefined || !isLongAnswer(estimate)) return outputTokensAtMost(estimate)
  const meanTokens = (outputTokens * meanCostOf(estimate)) / Math.max(1, cost)
  return (Math.min(outputTokensHigh, meanTokens) + outputTokensHigh) / 2
}
