import type { Replica } from '../../domain/fleet.ts'
import type { Fleet } from './fleet.ts'
import type { PoolPolicies } from './pool-policies.ts'

/**
 * What else do pools share that have an engine in common? Its room is the dispatcher's business
 * (`policy/dispatch/engine-room.ts`); its price and its seconds are counted once (`Fleet.standsFor`). Here: what was
 * learned of its speed and memory. A replica that comes to an engine which is there already begins with that, and both
 * learn on.
 *
 * Deliberately not: health. Each pool's replica is probed, so a dead engine is away in all its pools with the same round
 * of probes; but a model that fails there says nothing of the other models.
 */
export function shareTwin(fleet: Fleet, { twins }: PoolPolicies, replica: Replica): void {
  if (twins === undefined) return
  for (const other of fleet.sameEngine(replica)) {
    const learned = other === replica ? undefined : fleet.poolsById.get(other.poolId)?.twins
    if (learned === undefined || learned === twins) continue
    twins.adopt(replica.id, learned.of(other.id))
    return
  }
}
