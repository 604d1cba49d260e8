import type { Instant } from '../../base/clock.ts'
import type { ScalerLook } from '../../policy/autoscale/pool-scaler.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'
import type { ScalingParts } from './scaling-parts.ts'

/**
 * What is seen of one pool since the last look: its meters, and what other gateways told of theirs. Reads only; the
 * difference to the last look is the caller's `before`.
 */
export interface Before {
  readonly at: Instant
  readonly online: number
  readonly offline: number
  readonly workUs: number
  readonly workableUs: number
}

export const NOTHING_BEFORE: Before = { at: 0, online: 0, offline: 0, workUs: 0, workableUs: 0 }

export function lookAtPool(
  { policies }: ScalingParts,
  known: PoolPolicies,
  now: Instant,
  before: Before,
): { readonly look: ScalerLook; readonly after: Before } {
  const { pool, wait, offered, work, reports } = known
  const isSpot = pool.isSpot === true
  const { online, offline } = offered.total
  const facts = policies.dispatcher.poolFacts(pool.id)
  const others = offered.othersWaiting
  const worked = work.view() ?? before
  const workableUs = worked.workableUs - before.workableUs
  const look: ScalerLook = {
    offeredCost: online - before.online + (isSpot ? offline - before.offline : 0),
    elapsedUs: now - before.at,
    backlogCost: (isSpot ? wait.backlogCost : wait.onlineCost) + others.cost,
    queuedCount: (facts?.queuedCount ?? 0) + others.count,
    heldCount: facts?.heldCount ?? 0,
    drainPerReplicaUs: wait.drainOfOne(now, offered.costPerShareUs),
    readyCount: facts?.readyReplicaCount ?? 0,
    workRatio: workableUs > 0 ? (worked.workUs - before.workUs) / workableUs : undefined,
    replicas: pool.replicas.map((replica) => ({ id: replica.id, isReady: reports.isReady(replica) })),
  }
  return { look, after: { at: now, online, offline, workUs: worked.workUs, workableUs: worked.workableUs } }
}
