import type { Policies } from '../policies.ts'
import type { World } from '../ports.ts'
import type { Admitted, Ticket } from '../ticket.ts'
import type { Turnstile } from '../turnstile.ts'
import { pickOtherPool } from './pick-pool.ts'

/**
 * What becomes of the tickets that wait in a pool that has just lost its last replica? Where another pool or region can
 * take them, they move there, to the head of their lanes, with what they were promised; otherwise they stay and wait
 * for a replica to come back, as long as their patience lasts.
 */
export interface LossParts {
  readonly world: World
  readonly policies: Policies
  readonly turnstile: Turnstile
}

/** The readiness of some replica of the pool changed. */
export function noticeLoss(parts: LossParts, poolId: string, live: Iterable<Ticket>): void {
  const { dispatcher, poolsById } = parts.policies
  const readyReplicaCount = dispatcher.poolFacts(poolId)?.readyReplicaCount ?? 0
  const isLost = poolsById.get(poolId)?.presence.notice(parts.world.clock.now(), readyReplicaCount)
  if (isLost !== true) return
  for (const ticket of live) {
    const { admitted, phase } = ticket
    if (phase !== 'waiting' || admitted?.poolId !== poolId) continue
    const other = otherPoolOf(parts, admitted)
    if (other !== undefined) parts.turnstile.move(admitted, other)
  }
}

/** A pool that could take this ticket in place of the pool that the ticket was sent to. */
export function otherPoolOf({ policies, world }: LossParts, { plan, poolId, ticket }: Admitted): string | undefined {
  return pickOtherPool(policies, world.clock.now(), ticket.request, plan.releaseId, poolId)?.pool.id
}
