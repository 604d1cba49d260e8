import type { Policies } from '../policies.ts'
import type { World } from '../ports.ts'
import type { Ticket } from '../ticket.ts'
import type { Turnstile } from '../turnstile.ts'
import { pickOtherPool } from './pick-pool.ts'

/**
 * What becomes of those who wait in a pool that has just lost its last replica? Where another pool or region can take
 * them they move there, to the head of their lanes, with what they were promised; otherwise they stay and wait for a
 * replica to come back, as long as their patience lasts.
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
    if (ticket.phase !== 'waiting' || ticket.poolId !== poolId) continue
    const other = otherPoolOf(parts, ticket)
    if (other !== undefined) parts.turnstile.move(ticket, other)
  }
}

/** A pool that could take this ticket in place of the one that it was sent to. */
export function otherPoolOf({ policies, world }: LossParts, ticket: Ticket): string | undefined {
  const { plan, poolId, request } = ticket
  if (plan === undefined || poolId === undefined) return undefined
  return pickOtherPool(policies, world.clock.now(), request, plan.releaseId, poolId)?.pool.id
}
