import type { LaneFigures, PoolFigures } from '../../domain/pool-share.ts'
import type { OrgWeights } from '../fairness/tree-share.ts'
import type { PoolLane } from './candidate.ts'
import type { PoolState } from './pool-state.ts'

/**
 * What does this gateway tell the others about a pool? What it holds at each replica, and what each key holds and has
 * waiting, by the contract's weights. A copy.
 *
 * Bound: LANES_MAX keys. Of more, those with most waiting are told; the others keep their own weights at every gateway,
 * which is what they have while nobody shares.
 */
const LANES_MAX = 512

export function figuresOf(pool: PoolState, orgWeights: OrgWeights): PoolFigures {
  const byKey = new Map<string, Writable<LaneFigures>>()
  for (const lane of pool.lanes()) {
    if (lane.count === 0 && lane.heldCount === 0) continue
    const figures = byKey.get(lane.keyId) ?? newFigures(lane, orgWeights)
    byKey.set(lane.keyId, figures)
    figures.heldCount += lane.heldCount
    if (lane.band === 'offline') figures.offlineCount += lane.count
    else figures.waitingCount += lane.count
    figures.waitingCost += Math.round(lane.cost)
    figures.waitingUs += Math.round(lane.engineUs)
  }
  let lanes: LaneFigures[] = [...byKey.values()]
  if (lanes.length > LANES_MAX)
    lanes = lanes.toSorted((a, b) => b.waitingCount - a.waitingCount || b.heldCount - a.heldCount).slice(0, LANES_MAX)
  return {
    lanes,
    replicas: Array.from(pool.rooms.values(), (room) => ({
      replicaId: room.replica.id,
      inFlight: room.own.inFlight,
      sequencesMax: room.limit.view().sequencesMax,
      kvTokensMax: room.kvTokensMax,
    })),
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

const newFigures = (lane: PoolLane, orgWeights: OrgWeights): Writable<LaneFigures> => ({
  orgId: lane.backlog.orgId,
  orgWeight: orgWeights.get(lane.backlog.orgId),
  tenantId: lane.tenantId,
  tenantWeight: lane.backlog.weight,
  keyId: lane.keyId,
  keyWeight: lane.keyWeight,
  heldCount: 0,
  waitingCount: 0,
  offlineCount: 0,
  waitingCost: 0,
  waitingUs: 0,
})
