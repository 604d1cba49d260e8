import type { NoPlace, NoPlaceCode } from '../../domain/no-place.ts'
import type { Estimate } from '../../domain/plan.ts'
import type { LaneOptions } from '../fairness/lane.ts'
import type { Book } from './book.ts'
import type { Candidate, PoolLane } from './candidate.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import { NO_EFFECTS, type Offer, type Offered, type PlaceSeeker } from './offer.ts'
import type { PoolState } from './pool-state.ts'

/**
 * Is there a place for one more, and if not, who must go?
 *
 * The arrival's own lane first: over its bound, the arrival is refused. Then the shared buffer: over its bound, the
 * tenant with most per weight gives up its last ticket; if that is the arriving tenant, the arrival is refused, unless
 * a ticket of a lower band of its own can go instead. A ticket that is offered again was promised a place: there the
 * last of its lane yields.
 *
 * Asked twice, with the same answer. `overBounds` looks before anything has joined, so that admission can try a lower
 * rung; `whoYields` decides when the ticket has joined. Both are asked only for a ticket that has no immediate turn:
 * no ticket is refused for want of a place in a queue that it would not have stood in.
 *
 * Law L3. Example: a lane may hold 512 tickets and an hour of predicted work. With 59 minutes waiting, an answer of two
 * minutes is refused (`lane-work-full`), and the same question capped to half a minute has a place.
 */

/** Who must leave for the arrival to stay: no ticket (undefined), a lane's last ticket, or the arrival itself. */
export function whoYields(book: Book, lanes: LaneOptions, arrival: Candidate): PoolLane | NoPlace | undefined {
  const { lane } = arrival
  if (lane.count > lanes.depthMax) return laneFull(lanes)
  if (!lane.isWithin(lanes)) return laneWorkFull(lanes)
  const longest = book.buffer.isOver ? book.buffer.longest(lane) : undefined
  if (longest === undefined) return undefined
  if (longest.tenantId !== lane.tenantId || longest.bandRank > lane.bandRank) return longest
  return queueFull(book)
}

/** The same for a ticket that has not joined: `lane` is undefined where its key has none yet. */
export function overBounds(
  book: Book,
  lanes: LaneOptions,
  lane: PoolLane | undefined,
  arrival: { readonly seeker: PlaceSeeker; readonly bandRank: number; readonly estimate: Estimate },
): NoPlace | undefined {
  const { seeker, bandRank, estimate } = arrival
  if (lane !== undefined) {
    if (lane.count >= lanes.depthMax) return laneFull(lanes)
    if (lane.count > 0 && lane.engineUs + estimate.engineUs > lanes.engineUsMax) return laneWorkFull(lanes)
  }
  return book.buffer.wouldRefuse(seeker.tenant, bandRank) ? queueFull(book) : undefined
}

const laneFull = ({ depthMax }: LaneOptions): NoPlace => ({
  code: 'lane-full',
  because: `${depthMax} requests of this key are waiting already`,
})

const laneWorkFull = ({ engineUsMax }: LaneOptions): NoPlace => ({
  code: 'lane-work-full',
  because: `more than ${Math.round(engineUsMax / 1e6)} s of work of this key would be waiting`,
})

const queueFull = ({ buffer }: Book): NoPlace => ({
  code: 'queue-full',
  because: `all ${buffer.queueRequestsMax} places of the queue are taken, and this tenant has most for its weight`,
})

/** Takes a lane's last ticket out. True when that ticket was the lane's head, so that another may have room now. */
export function evictTail(
  book: Book,
  pool: PoolState,
  lane: PoolLane,
  code: 'queue-full' | 'lane-full',
  effects: EffectBuffer,
): boolean {
  const tail = lane.tail() as Candidate
  const wasHead = lane.head() === tail
  book.dismiss(pool, tail)
  pool.sync(lane)
  const because =
    code === 'queue-full'
      ? 'the queue is full, and this tenant has most for its weight'
      : 'its lane is full, and a request that had its place before came back'
  effects.push({ kind: 'evicted', ticketId: tail.ticketId, code, because })
  return wasHead
}

/** Why a pool can never take this work, however empty its queue is. */
export function neverFits(pool: PoolState | undefined, poolId: string, estimate: Estimate): NoPlace | undefined {
  if (pool === undefined) return noPlace('unknown-pool', `no pool is called ${poolId}`)
  if (pool.canEverFit(estimate)) return undefined
  const tokens = Math.ceil(estimate.promptTokens + estimate.outputTokens)
  return noPlace(
    'fits-no-replica',
    `${tokens} tokens fit no replica of ${poolId}: the largest holds ${pool.kvTokensMax}`,
  )
}

/** A queue without a wait is a queue without places. */
export const NOTHING_MAY_WAIT: NoPlace = {
  code: 'queue-full',
  because: 'nothing may wait (waitMsMax is 0), and no replica has room for it now',
}

const EXPIRED_ON_ARRIVAL: NoPlace = {
  code: 'expired-on-arrival',
  because: 'its time to wait was over when it was offered',
}

const noPlace = (code: NoPlaceCode, because: string): NoPlace => ({ code, because })

/** Why an offer cannot even be queued. */
export function offerRefusal(now: number, pool: PoolState | undefined, offer: Offer): Offered | undefined {
  const isLate = pool !== undefined && offer.expiresAt <= now
  const why = isLate ? EXPIRED_ON_ARRIVAL : neverFits(pool, offer.poolId, offer.estimate)
  return why && { kind: 'refused', ...why, effects: NO_EFFECTS }
}
