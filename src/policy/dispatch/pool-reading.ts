import type { Estimate } from '../../domain/plan.ts'
import { type OrgWeights, sharesAmong } from '../fairness/tree-share.ts'
import { type ActivePromises, activeBeside } from './active-tenants.ts'
import type { Candidate, PoolLane, TenantBacklog } from './candidate.ts'
import { isLongFor, LONG_PROMPT_DEFAULTS } from './long-prompts.ts'
import type { ReplicaRoom } from './replica-room.ts'

/**
 * Which prompts of a pool are being read, and on whose time? The books behind `long-prompts.ts`, which has the rules and
 * the example: a prompt is counted from its grant to its first token or to its end, whichever comes first.
 *
 * Deliberately not: no decision about lanes; `give-turns.ts` asks, and bars.
 *
 * Laws: L6 as amended.
 */
interface ReadPool {
  readonly rooms: ReadonlyMap<string, ReplicaRoom>
  readonly backlogs: ReadonlyMap<string, TenantBacklog>
  readonly promises: ActivePromises
  readonly readyReplicaCount: number
  readonly orgWeights: OrgWeights
}

export class PoolReading {
  readonly #pool: ReadPool
  /** Prompts being read that count against their tenants' reading time. */
  #hinderingCount = 0

  constructor(pool: ReadPool) {
    this.#pool = pool
  }

  /** Until when the head must leave the time to others; undefined when it need not. */
  barredUntil(now: number, head: Candidate): number | undefined {
    if (!this.#hinders(now, head)) return undefined
    const isLastFree = this.#hinderingCount + 1 >= this.#pool.readyReplicaCount
    return head.lane.backlog.readingTime.barredUntil(now, this.#earned(now, head), isLastFree)
  }

  /**
   * Until the tenant has reading time again for a ticket that joined this lane now: the bar of the lane's head, what the
   * hindering prompts between them cost of the share, and the ticket's own. 0 where nothing of that keeps it.
   */
  waitUs(now: number, lane: PoolLane, estimate: Estimate, headUntil: number | undefined): number {
    const [room] = this.#pool.rooms.values()
    const reading = room?.reading
    if (reading === undefined) return 0
    const isHindering = this.#hinders(now, { estimate, lane })
    const isHeadBarred = lane.barredHead !== undefined && !lane.isRoomless && headUntil !== undefined
    if (!isHindering && !isHeadBarred) return 0
    const earned = Math.max(1e-3, this.#earned(now, { lane }))
    const readUs = (one: Estimate): number => reading.readUs(one.promptTokens - one.cachedTokens)
    if (!isHeadBarred) {
      const isLastFree = this.#hinderingCount + 1 >= this.#pool.readyReplicaCount
      const until = lane.backlog.readingTime.barredUntil(now, earned, isLastFree)
      if (until === undefined) return 0
      return Number.isFinite(until) ? until - now : readUs(estimate) / earned
    }
    const head = (lane.barredHead as Candidate).estimate
    let waitUs = Number.isFinite(headUntil) ? Math.max(0, (headUntil as number) - now) : readUs(head) / earned
    let lastUs = readUs(head)
    for (const waiter of lane) {
      const other = (waiter as Candidate).estimate
      if (waiter === lane.barredHead || !this.#hinders(now, { estimate: other, lane })) continue
      waitUs += lastUs / earned
      lastUs = readUs(other)
    }
    return waitUs + (isHindering ? lastUs / earned : lastUs)
  }

  start(now: number, candidate: Candidate, room: ReplicaRoom): void {
    candidate.isLong = isLongFor(room.reading, candidate.estimate)
    if (candidate.isLong) room.engine.longCount++
    candidate.isHindering = this.#hinders(now, candidate)
    if (!candidate.isHindering) return
    this.#hinderingCount++
    candidate.lane.backlog.readingTime.start(now, this.#earned(now, candidate))
  }

  /** True when the time counted against the tenant: lanes that are barred may go now. */
  end(now: number, candidate: Candidate, room: ReplicaRoom): boolean {
    if (candidate.isLong) room.engine.longCount--
    if (!candidate.isHindering) return false
    this.#hinderingCount--
    const tookUs = now - candidate.grantedAt
    candidate.lane.backlog.readingTime.end(now, this.#earned(now, candidate), tookUs)
    return true
  }

  /** Whether reading the prompt takes long enough to break what another active tenant is promised. */
  #hinders(now: number, { estimate, lane }: Pick<Candidate, 'estimate' | 'lane'>): boolean {
    const [room] = this.#pool.rooms.values()
    const reading = room?.reading
    if (reading === undefined || !isLongFor(reading, estimate)) return false
    const readUs = reading.readUs(estimate.promptTokens - estimate.cachedTokens)
    return readUs > this.#pool.promises.tightestBeside(now, lane.backlog) * LONG_PROMPT_DEFAULTS.promiseRatio
  }

  /** Microseconds of reading that the tenant earns per microsecond: its share of the replicas that are ready. */
  #earned(now: number, { lane }: Pick<Candidate, 'lane'>): number {
    const active = activeBeside(now, lane.backlog, this.#pool.backlogs.values())
    const share = sharesAmong(active, this.#pool.orgWeights)[0] as number
    return share * Math.max(1, this.#pool.readyReplicaCount)
  }
}
