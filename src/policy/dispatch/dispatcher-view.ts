import type { LimitView } from '../limits/limit.ts'
import type { BacklogView } from './candidate.ts'
import type { PoolState } from './pool-state.ts'

/** A copy of what the dispatcher holds, for people: the admin API, the dashboard, tests. Not for the request path. */
export interface DispatcherView {
  readonly queuedCount: number
  readonly queueRequestsMax: number
  readonly pools: readonly PoolView[]
}

export interface PoolView {
  readonly id: string
  readonly fairness: string
  readonly queuedCount: number
  readonly queuedCost: number
  readonly heldCount: number
  readonly heldCost: number
  /** Lanes whose head had a turn and no room. */
  readonly owedCount: number
  /** The replicas that are kept free for heads that were passed over. */
  readonly keptReplicaIds: readonly string[]
  readonly tenants: readonly BacklogView[]
  readonly replicas: readonly ReplicaView[]
}

export interface ReplicaView {
  readonly id: string
  readonly isReady: boolean
  readonly isOpen: boolean
  readonly held: number
  readonly sequences: number
  readonly kvTokens: number
  readonly kvTokensMax: number
  readonly allowance: number
  readonly limit: LimitView
}

export function viewOf(pool: PoolState): PoolView {
  return {
    id: pool.id,
    fairness: pool.foreground.fairness.name,
    queuedCount: pool.queuedCount,
    queuedCost: pool.queuedCost,
    heldCount: pool.heldCount,
    heldCost: pool.heldCost,
    owedCount: pool.owedCount,
    keptReplicaIds: pool.kept.all.map(({ room }) => room.replica.id),
    tenants: [...pool.backlogs.values()].map(copyOf),
    replicas: [...pool.rooms.values()].map((room) => ({
      id: room.replica.id,
      isReady: room.isReady,
      isOpen: room.openIndex >= 0,
      held: room.own.held,
      sequences: room.ledger.sequences,
      kvTokens: room.ledger.kvTokens,
      kvTokensMax: room.kvTokensMax,
      allowance: room.allowance,
      limit: room.limit.view(),
    })),
  }
}

function copyOf(backlog: BacklogView): BacklogView {
  const { tenantId, weight, queuedCount, queuedCost, heldCount, heldCost } = backlog
  return { tenantId, weight, queuedCount, queuedCost, heldCount, heldCost }
}
