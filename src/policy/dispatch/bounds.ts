import type { Book } from './book.ts'
import type { Candidate, PoolLane } from './candidate.ts'
import type { DispatcherOptions } from './dispatch-options.ts'
import type { EffectBuffer } from './effect-buffer.ts'
import { NO_EFFECTS, type Offer, type Offered, type RefusedCode } from './offer.ts'
import type { PoolState } from './pool-state.ts'

/**
 * Is there a place for one more, and if not, whose is it? Asked after the arrival had its chance of an immediate turn,
 * so that nobody is refused for want of a place in a queue that he would not have stood in.
 *
 * The arrival's own lane first: over its bound, the arrival is refused. Then the shared buffer: over its bound, the
 * tenant with most per weight gives up its last ticket; if that is the arriving tenant, the arrival is refused, unless
 * a ticket of a lower band of its own can go instead. A ticket that is offered again was promised a place: there the
 * last of its lane yields.
 *
 * Law L3.
 */
export interface OverBound {
  readonly kind: 'refused'
  readonly code: RefusedCode
  readonly because: string
}

/** Who must leave for the arrival to stay: nobody (undefined), a lane's last ticket, or the arrival itself. */
export function whoYields(
  book: Book,
  options: DispatcherOptions,
  arrival: Candidate,
): PoolLane | OverBound | undefined {
  const { lane } = arrival
  const { depthMax, engineUsMax } = options.lanes
  if (lane.count > depthMax) {
    return { kind: 'refused', code: 'lane-full', because: `${depthMax} requests of this key are waiting already` }
  }
  if (!lane.isWithin(options.lanes)) {
    const because = `more than ${Math.round(engineUsMax / 1e6)} s of work of this key would be waiting`
    return { kind: 'refused', code: 'lane-work-full', because }
  }
  const longest = book.buffer.isOver ? book.buffer.longest(lane) : undefined
  if (longest === undefined) return undefined
  if (longest.tenantId !== lane.tenantId || longest.bandRank > lane.bandRank) return longest
  const because = `all ${options.queueRequestsMax} places of the queue are taken, and this tenant has most for its weight`
  return { kind: 'refused', code: 'queue-full', because }
}

/** Takes a lane's last ticket out. True when that was its head, so that another may have room now. */
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

/** Why an offer cannot even be queued. */
export function refusalOf(now: number, pool: PoolState | undefined, offer: Offer): Offered | undefined {
  if (pool === undefined) return refused('unknown-pool', `no pool is called ${offer.poolId}`)
  if (offer.expiresAt <= now) return refused('expired-on-arrival', 'its time to wait was over when it was offered')
  if (pool.canEverFit(offer.estimate)) return undefined
  const tokens = Math.ceil(offer.estimate.promptTokens + offer.estimate.outputTokens)
  return refused(
    'fits-no-replica',
    `${tokens} tokens fit no replica of ${pool.id}: the largest holds ${pool.kvTokensMax}`,
  )
}

function refused(code: RefusedCode, because: string): Offered {
  return { kind: 'refused', code, because, effects: NO_EFFECTS }
}
