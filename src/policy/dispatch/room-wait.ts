import { type Estimate, meanCostOf } from '../../domain/plan.ts'
import type { Band } from '../../domain/tenant.ts'
import type { PoolLane } from './candidate.ts'
import type { PoolState } from './pool-state.ts'

/**
 * When would an answer find room that is now held by answers that are being written?
 *
 * A replica that is open may still have no room for *this* answer: its memory is booked, or the tenant's lasting answers
 * have taken what may be taken for long (`lasting-answers.ts`). Room then comes back only when an answer ends. Where many
 * answers of a time T are being written, one of them ends every T ÷ their number: those of the tenant itself, where it is
 * its own lasting answers that keep it out, since what others give back others take; else those of the whole pool. T is a
 * mean: answers are predicted by their median, and a few long ones hold most of the room.
 *
 * Worked example: 16 lasting answers of 40 s are being written, and one more must wait for one of them to end: 2.5 s. With
 * two tickets in the lane before it, 7.5 s.
 */
export interface RoomWait {
  /** Until one more answer like this finds room; 0 where there is room now, or no replica is open. */
  readonly perAnswerUs: number
  /** The tenant's own lasting answers keep it out, and what waits in its lane goes first. */
  readonly isBarred: boolean
  /** Until the tenant may have a prompt like this one read (`pool-reading.ts`). */
  readonly readingUs: number
}

const ROOM_NOW: RoomWait = { perAnswerUs: 0, isBarred: false, readingUs: 0 }

/** Pools with more open replicas than this are taken to have room: some of them has. */
const OPEN_LOOKS_MAX = 128

export function roomWaitOf(
  now: number,
  pool: PoolState | undefined,
  asked: { readonly lane: PoolLane | undefined; readonly band: Band; readonly estimate: Estimate },
): RoomWait {
  if (pool === undefined) return ROOM_NOW
  const { lane, band, estimate } = asked
  const readingUs =
    lane === undefined || band === 'offline' ? 0 : pool.reading.waitUs(now, lane, estimate, pool.barred.untilOf(lane))
  const meanUs = (estimate.engineUs * meanCostOf(estimate)) / Math.max(1, estimate.cost)
  const ownCount = lane?.backlog.lastingCount ?? 0
  if (lane !== undefined && ownCount > 0) {
    // A lane is asked only while something waits in it: of an empty one, `isCounted` says how its last head fared. Were
    // that believed, the lane would stay empty, with its room free, until the tenant's last lasting answer has ended.
    const hasBarredHead = lane.count > 0 && lane.isRoomless
    const isBarred = hasBarredHead || pool.lasting.barredUntil(now, { lane, estimate }) !== undefined
    if (isBarred) return { perAnswerUs: Math.ceil(meanUs / ownCount), isBarred, readingUs }
  }
  // Where no replica is open it is places that are missing, which come back as steps allow: admission counts work for it.
  if (pool.open.length === 0 || hasMemoryFor(pool, estimate))
    return readingUs === 0 ? ROOM_NOW : { ...ROOM_NOW, readingUs }
  return { perAnswerUs: Math.ceil(meanUs / Math.max(1, pool.heldCount)), isBarred: false, readingUs }
}

/** Memory alone: what else a limit may say against the answer changes from step to step. */
function hasMemoryFor(pool: PoolState, estimate: Estimate): boolean {
  if (pool.open.length > OPEN_LOOKS_MAX) return true
  for (const { ledger, kvTokensMax } of pool.open)
    if (ledger.sequences === 0 || ledger.kvTokensWith(estimate) <= kvTokensMax) return true
  return false
}
