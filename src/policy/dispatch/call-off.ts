import { HeldTurns } from '../limits/relieved-load.ts'
import type { Book } from './book.ts'
import type { Candidate } from './candidate.ts'
import type { PoolState } from './pool-state.ts'
import type { ReplicaRoom } from './replica-room.ts'

/**
 * Which offline turns give way to an online ticket that would wait? The youngest at one replica, as few as make room for
 * it there; of all replicas, those that throw away least. None where even all that may be called off would not make room,
 * or would waste more than may be wasted: half a room helps nobody.
 *
 * Turns that were called off a moment ago and are not yet back still count as held. Each was called off for another ticket,
 * which will take its room.
 *
 * Bounds: turns called off for one ticket, and replicas looked at.
 */
const TURNS_MAX = 8
const ROOMS_MAX = 64

/** Tokens that would be wasted if the lease were called off now; undefined for one that may not be. */
export type WasteOf = (leaseId: number) => number | undefined

export interface CallOff {
  readonly leaseIds: readonly number[]
  readonly tokens: number
}

interface WasteTerms {
  readonly wasteOf: WasteOf
  readonly tokensMax: number
}

/**
 * Chooses, and marks the turns chosen as on their way back: until the last of them is back their replica takes no offline
 * turn, or offline turns would fill the room again one by one.
 */
export function callOffFor(book: Book, pool: PoolState, waiting: Candidate, terms: WasteTerms): CallOff | undefined {
  const choice = chooseCallOff(pool, waiting, terms)
  for (const leaseId of choice?.leaseIds ?? []) book.yield(leaseId)
  return choice
}

function chooseCallOff(pool: PoolState, waiting: Candidate, { wasteOf, tokensMax }: WasteTerms): CallOff | undefined {
  const { lane } = waiting
  // A lane that is barred waits for its tenant's own turns, not for room.
  if (lane.band === 'offline' || waiting.state !== 'ready' || lane.barredHead !== undefined) return undefined
  let best: CallOff | undefined
  let looked = 0
  for (const room of pool.rooms.values()) {
    const { offlineTurns, keptBy } = room.engine
    if (offlineTurns.size === 0 || keptBy !== undefined || !pool.mayUse(room, waiting)) continue
    if (++looked > ROOMS_MAX) break
    const found = youngestAt(room, waiting, wasteOf, Math.min(tokensMax, best?.tokens ?? tokensMax))
    if (found !== undefined && (best === undefined || found.tokens < best.tokens)) best = found
  }
  return best
}

function youngestAt(room: ReplicaRoom, waiting: Candidate, wasteOf: WasteOf, tokensMax: number): CallOff | undefined {
  const off = new HeldTurns()
  const leaseIds: number[] = []
  let tokens = 0
  // In the order of their grants.
  for (const [leaseId, turn] of [...room.engine.offlineTurns].reverse()) {
    const waste = turn.isYielding ? undefined : wasteOf(leaseId)
    if (waste === undefined) continue
    tokens += waste
    if (tokens > tokensMax || leaseIds.length === TURNS_MAX) return undefined
    leaseIds.push(leaseId)
    off.add(turn)
    if (room.fitsWithout(waiting.estimate, off)) return { leaseIds, tokens }
  }
  return undefined
}
