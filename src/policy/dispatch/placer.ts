import type { Placement, WhereKnown } from '../../domain/placement.ts'
import type { Estimate } from '../../domain/plan.ts'
import type { ReplicaRoom } from './replica-room.ts'

/**
 * Which of these replicas? The narrow interface that routing fills: every room given has space for the ticket, and
 * there is at least one. `because` is a constant string per reason, so that choosing allocates nothing.
 */
export interface Placer {
  choose(now: number, ask: Ask, rooms: readonly ReplicaRoom[]): ReplicaRoom
  /** Where most of the ticket's prompt is known; absent for a placer that knows nothing of prompts. */
  whereKnown?(now: number, ask: Ask, rooms: readonly ReplicaRoom[]): WhereKnown
  /** Why the last choice was made, and the numbers behind it where there are any. */
  readonly because: string
  readonly placement?: Placement | undefined
}

export interface Ask {
  readonly ticketId: string
  readonly estimate: Estimate
  readonly prefixHashes: readonly number[] | undefined
  /** Names the ticket's conversation; undefined when the client did not say. */
  readonly sessionHash: number | undefined
}

/**
 * The replica whose work in flight is predicted to take least; among equals the one with fewer sequences, then the
 * one that was added first. Deliberately knows nothing of prefixes, regions or health.
 */
export class LeastLoaded implements Placer {
  readonly because = 'least predicted load'

  choose(_now: number, _ask: Ask, rooms: readonly ReplicaRoom[]): ReplicaRoom {
    let best = rooms[0] as ReplicaRoom
    for (let i = 1; i < rooms.length; i++) {
      const room = rooms[i] as ReplicaRoom
      if (isLighter(room, best)) best = room
    }
    return best
  }
}

function isLighter(a: ReplicaRoom, b: ReplicaRoom): boolean {
  if (a.ledger.engineUs !== b.ledger.engineUs) return a.ledger.engineUs < b.ledger.engineUs
  if (a.ledger.sequences !== b.ledger.sequences) return a.ledger.sequences < b.ledger.sequences
  return a.ordinal < b.ordinal
}
