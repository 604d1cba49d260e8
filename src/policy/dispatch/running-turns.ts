import type { ReplicaRoom } from './replica-room.ts'

/**
 * How many turns run at a pool, and how many more could? A replica that holds 200 turns and is to four fifths full, by its
 * limit or its memory, could hold 50 more like them. Of a few replicas, for all: the placer keeps the others as full.
 */
export interface RunningTurns {
  readonly running: number
  /** Infinity where nothing runs: then nobody can tell how large a turn is. */
  readonly free: number
}

interface RunningPool {
  readonly rooms: ReadonlyMap<string, ReplicaRoom>
  readonly replicaParts: number
}

/** Replicas that are looked at, for a question that every request asks while others wait. */
const LOOKS = 8

export function runningTurnsOf(pool: RunningPool): RunningTurns | undefined {
  let looks = 0
  let running = 0
  let free = 0
  for (const { isReady, ledger, limit, kvTokensMax } of pool.rooms.values()) {
    if (!isReady) continue
    const { sequences, kvTokens } = ledger
    const fullness = Math.max(limit.fullness(ledger), kvTokens / kvTokensMax)
    running += sequences
    free += fullness > 0 ? Math.max(0, sequences / fullness - sequences) : Number.POSITIVE_INFINITY
    if (++looks === LOOKS) break
  }
  if (looks === 0) return undefined
  const factor = pool.replicaParts / looks
  return { running: running * factor, free: free * factor }
}
