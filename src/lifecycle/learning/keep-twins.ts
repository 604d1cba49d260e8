import type { Replica } from '../../domain/fleet.ts'
import type { Policies } from '../policies.ts'
import type { KeptTwin, World } from '../ports.ts'
import type { Turnstile } from '../turnstile.ts'

/**
 * What was learned of engines outlives the process: it is kept every half minute and at the end, and a replica that comes
 * (at the start, by discovery, or back after a removal) begins with what was kept of it.
 */
export interface TwinParts {
  readonly world: World
  readonly policies: Policies
  readonly turnstile: Turnstile
}

/** False when there is nothing to keep yet. */
export function keepTwins({ world, policies }: TwinParts): boolean {
  const kept: KeptTwin[] = []
  for (const { pool, twins } of policies.poolsById.values()) {
    if (twins === undefined) continue
    for (const { id } of pool.replicas) {
      const memory = twins.memoryOf(id)
      if (memory !== undefined) kept.push({ poolId: pool.id, replicaId: id, memory })
    }
  }
  if (kept.length > 0) world.twinKeeper.keep(kept)
  return kept.length > 0
}

/** The store has answered: the replicas that are there already begin with what it says. */
export function recallTwins(parts: TwinParts): void {
  for (const { pool } of parts.policies.poolsById.values())
    for (const replica of pool.replicas) recallTwin(parts, replica)
}

export function recallTwin({ world, policies, turnstile }: TwinParts, { id, poolId }: Replica): void {
  const twins = policies.poolsById.get(poolId)?.twins
  const memory = twins === undefined ? undefined : world.twinKeeper.recall(id)
  if (twins === undefined || memory === undefined) return
  if (!twins.remember(world.clock.now(), id, memory)) return
  const { capacity } = twins.of(id).kv
  if (capacity !== undefined) turnstile.replicaChanged(id, { kv: capacity })
}
