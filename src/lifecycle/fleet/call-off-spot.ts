import type { Policies } from '../policies.ts'
import type { Ticket } from '../ticket.ts'
import type { FleetChange } from './change-fleet.ts'

/**
 * What becomes of the offline work that runs at a spot replica whose end was announced? It is called off at once, and its
 * owner is told to come back: the replica will not live to finish it, and what it does meanwhile is lost. Nobody pays for
 * it. Replicas that autoscaling drains finish what they run.
 */
export function callOffSpot(policies: Policies, change: FleetChange, by: string, live: Iterable<Ticket>): void {
  if ((change.kind !== 'drain-replica' && change.kind !== 'remove-replica') || by === 'autoscale') return
  const replica = policies.fleet.replica(change.replicaId)
  if (replica === undefined || policies.poolsById.get(replica.poolId)?.pool.isSpot !== true) return
  for (const { attempt, cancellation } of live)
    if (attempt?.isOver === false && attempt.lease.replica === replica) cancellation.cancel('shutting-down')
}
