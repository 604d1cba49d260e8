import { type Estimate, meanEngineUsOf } from '../../domain/plan.ts'
import type { OrgWeights } from '../fairness/tree-share.ts'
import { isLongAnswer, kvTokensOf } from '../limits/booked-room.ts'
import { type ActivePromises, activeBeside } from './active-tenants.ts'
import type { Candidate, TenantBacklog } from './candidate.ts'
import type { ReplicaRoom } from './replica-room.ts'
import { HELD_ROOM_DEFAULTS } from './tenant-room.ts'
import type { WeightScale } from './weight-scale.ts'

/**
 * Who holds how much of a pool's room, and what may be taken of the rest?
 *
 * An answer keeps its room until it ends, and no turn takes the room back. A tenant that asks for long answers fills every
 * replica in the seconds in which no other happens to wait: the order of turns is fair, and still the others find no room
 * until those answers end. So every turn counts with the part of the room that it holds, and every tenant is known by the
 * part that its requests of late are expected to need. Room is counted in parts of the pool's: the larger of an answer's part
 * of all KV memory and its part of all sequences.
 *
 *     held      what the tenant's turns hold, with what answers that outgrew their predictions are on the way to
 *     need      arrivals of late × part × time (Little's law) and `deviations` of that, at most the tenant's share
 *     owed      of the others, what they need and do not hold
 *     free      what nobody holds, and what the tenant gives back within the tightest promise of the others, as it did of late
 *
 * A tenant whose turns hold more than its share takes no room for long where `free` would be less than `owed`. At or below
 * its share it is never barred, and alone it may take everything. Room that is taken for a few times a promise only is no
 * matter: it is back before the others miss it.
 *
 * How long a tenant's answers last is not what was predicted of them alone: only those that ended have taught the prediction.
 * What runs, divided by what ends, counts the long ones that still run (Little's law again). And while fewer than four
 * answers of their kind have ended, they count as long as their bounds let them be.
 *
 * Deliberately not: no answer is interrupted; a tenant that comes to a pool that is full waits for answers to end.
 *
 * Laws: L6 as amended. No starvation: a bar ends after `recheckUs`, and when a turn ends.
 *
 * Worked example: two tenants chat, four requests a second each of 1 ÷ 256 of the room for 3 s: they need 0.047 each and,
 * with two deviations, 0.074. Beside them answers that last for a minute may hold all but what the two do not hold of that.
 */
interface RoomyPool {
  readonly rooms: ReadonlyMap<string, ReplicaRoom>
  readonly backlogs: ReadonlyMap<string, TenantBacklog>
  readonly promises: ActivePromises
  readonly orgWeights: OrgWeights
  readonly scale: WeightScale
  readonly answers: { readonly tokenUs: number }
}

export class HeldRoom {
  readonly #pool: RoomyPool
  #heldCount = 0
  /** Exactly 0 when nothing is held. */
  #heldRatio = 0
  #kvTokens = 0
  #sequences = 0
  #sizedAt = Number.NEGATIVE_INFINITY

  constructor(pool: RoomyPool) {
    this.#pool = pool
  }

  /** A request of the tenant came, whether or not it was admitted. */
  claim(now: number, own: TenantBacklog, estimate: Estimate): void {
    const lastsUs = Math.max(meanEngineUsOf(estimate), Math.min(own.room.lastsUs(now), LASTS_MAX_US))
    own.room.claim(now, this.#ratioOf(now, kvTokensOf(estimate)), lastsUs)
  }

  /** Until when the head must leave the room to others; undefined when it need not. */
  barredUntil(now: number, { estimate, lane }: Pick<Candidate, 'estimate' | 'lane'>): number | undefined {
    const own = lane.backlog
    if (own.room.heldCount === 0 || lane.band === 'offline') return undefined
    const promiseUs = this.#pool.promises.tightestBeside(now, own)
    if (promiseUs === Number.POSITIVE_INFINITY) return undefined
    const lastsUs = lastsUsOf(now, own, estimate)
    if (lastsUs <= Math.max(SHORTEST_LONG_US, promiseUs * HELD_ROOM_DEFAULTS.promiseTimes)) return undefined
    const ratio = this.#heldBy(now, own, estimate)
    const active = activeBeside(now, own, this.#pool.backlogs.values())
    const [ownShare = 1, ...shares] = this.#pool.scale.sharesAmong(active, this.#pool.orgWeights)
    if (own.room.heldRatio + ratio <= ownShare + ROUNDING) return undefined
    let owedRatio = 0
    for (const [i, share] of shares.entries()) {
      const { room } = active[i + 1] as TenantBacklog
      const needRatio = lastsUs > LONGEST_US ? room.peakRatio(now) : room.needRatio(now)
      owedRatio += Math.max(0, Math.min(share, needRatio) - room.heldRatio)
    }
    const backRatio = own.room.returnedPerUs(now) * promiseUs * HELD_ROOM_DEFAULTS.helpfulRatio
    const freeRatio = Math.min(1 - this.#heldRatio, this.#unbookedRatio()) - ratio
    return freeRatio + backRatio < owedRatio ? now + HELD_ROOM_DEFAULTS.recheckUs : undefined
  }

  hold(now: number, candidate: Candidate): void {
    if (candidate.lane.band === 'offline') return
    candidate.heldRatio = this.#heldBy(now, candidate.lane.backlog, candidate.estimate)
    this.#move(candidate, 1)
  }

  /**
   * The answer has this many tokens. Far beyond what was predicted, it counts with the longest of its tenant's that were
   * such, and at most with a few times what it has: nobody knows its end.
   */
  grow(now: number, candidate: Candidate, outputTokens: number): void {
    const { estimate, heldRatio, lane } = candidate
    if (heldRatio === 0 || outputTokens <= OUTGROWN_TIMES * estimate.outputTokensHigh) return
    candidate.hasOutgrown = true
    const { longestTokens } = lane.backlog.room
    const mostTokens = longestTokens === 0 ? (estimate.outputTokensMost ?? 0) : longestTokens
    const likelyTokens = Math.max(outputTokens, Math.min(mostTokens, outputTokens * LIKELY_TIMES))
    const ratio = this.#ratioOf(now, estimate.promptTokens + likelyTokens)
    if (ratio <= heldRatio) return
    this.#move(candidate, -1)
    candidate.heldRatio = ratio
    this.#move(candidate, 1)
  }

  release(now: number, candidate: Candidate, outputTokens = 0): void {
    if (candidate.heldRatio === 0) return
    const { room } = candidate.lane.backlog
    if (candidate.hasOutgrown) room.longestTokens = Math.max(room.longestTokens, outputTokens)
    candidate.lane.backlog.room.end(now, candidate.heldRatio)
    this.#move(candidate, -1)
    candidate.heldRatio = 0
  }

  #move({ lane: { backlog }, heldRatio }: Candidate, sign: 1 | -1): void {
    backlog.room.move(heldRatio, sign)
    this.#heldCount += sign
    this.#heldRatio = this.#heldCount === 0 ? 0 : Math.max(0, this.#heldRatio + sign * heldRatio)
  }

  /** As predicted, or as the tenant's answers last by what runs and ends. */
  #heldBy(now: number, own: TenantBacklog, estimate: Estimate): number {
    const { tokenUs } = this.#pool.answers
    const seenTokens = tokenUs > 0 ? Math.min(own.room.lastsUs(now) / tokenUs, SEEN_TOKENS_MAX) : 0
    return this.#ratioOf(now, estimate.promptTokens + Math.max(seenTokens, outputTokensHeld(estimate)))
  }

  #ratioOf(now: number, kvTokens: number): number {
    this.#size(now)
    return Math.min(1, Math.max(kvTokens / this.#kvTokens, 1 / this.#sequences))
  }

  /** O(replicas), ten times a second at most. */
  #size(now: number): void {
    if (now - this.#sizedAt < SIZED_EVERY_US) return
    this.#sizedAt = now
    let kvTokens = 0
    let sequences = 0
    for (const room of this.#pool.rooms.values()) {
      if (!room.isReady) continue
      kvTokens += room.kvTokensMax
      sequences += Math.min(room.allowance, room.limit.view().sequencesMax)
    }
    this.#kvTokens = Math.max(1, kvTokens)
    this.#sequences = Math.max(1, sequences)
  }

  /** By what limits and memory say of the first few replicas: the placer keeps the others as full. */
  #unbookedRatio(): number {
    let looks = 0
    let free = 0
    for (const { isReady, ledger, limit, kvTokensMax } of this.#pool.rooms.values()) {
      if (!isReady) continue
      free += Math.max(0, 1 - Math.max(limit.fullness(ledger), ledger.kvTokens / kvTokensMax))
      if (++looks === LOOKS) break
    }
    return looks === 0 ? 0 : free / looks
  }
}

/** Tokens: before the first of them have ended, nothing is said of how long answers last. */
const SEEN_TOKENS_MAX = 4_096
/** Microseconds. Of a tenant whose answers run and do not end it is not believed that it needs room for longer. */
const LASTS_MAX_US = 20_000_000
const SIZED_EVERY_US = 100_000
/** Replicas that are looked at. */
const LOOKS = 8
/** Sums of a few hundred parts of the room are this exact. */
const ROUNDING = 1e-9
/** Times the cautious prediction beyond which an answer is not one of those that it was learned from. */
const OUTGROWN_TIMES = 2
/** Times what an answer has that has outgrown its prediction: as much as it may well still become. */
const LIKELY_TIMES = 16
/** Microseconds. Room that is taken for longer is taken until after the others have needed the most that they do. */
const LONGEST_US = 20_000_000
/** Microseconds. Whatever is promised, shorter answers give their room back soon. */
const SHORTEST_LONG_US = 2_000_000

/** How long the answer may hold its room. */
function lastsUsOf(now: number, own: TenantBacklog, estimate: Estimate): number {
  const { outputTokensUnproven, outputTokensHigh, outputTokens, engineUs } = estimate
  const longestUs = (engineUs * (outputTokensUnproven ?? outputTokensHigh)) / Math.max(1, outputTokens)
  return Math.max(outputTokensUnproven === undefined ? meanEngineUsOf(estimate) : longestUs, own.room.lastsUs(now))
}

/**
 * Where less than the cautious prediction is booked for each (`limits/booked-room.ts`), many such answers hold about their
 * mean. Halfway from there to the cautious prediction: with the mean alone, tenants of long answers took so much of an
 * overloaded pool that a tenth fewer requests were answered in time; with the prediction, room at capacity stayed unused.
 */
function outputTokensHeld(estimate: Estimate): number {
  const { outputTokens, outputTokensHigh, outputTokensUnproven, engineUs } = estimate
  if (outputTokensUnproven !== undefined) return outputTokensUnproven
  if (!isLongAnswer(estimate)) return outputTokensHigh
  const meanTokens = (outputTokens * meanEngineUsOf(estimate)) / Math.max(1, engineUs)
  return (Math.min(outputTokensHigh, meanTokens) + outputTokensHigh) / 2
}
