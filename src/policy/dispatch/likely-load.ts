import type { Load } from '../limits/ledger.ts'
import type { PoolState } from './pool-state.ts'
import type { ReplicaRoom } from './replica-room.ts'

/** Replicas that are looked at to know the load of the likely one: a placer finds one that is as little loaded. */
const LIKELY_LOOKS = 8

/**
 * What will be in flight where the next ticket would probably go, when it goes there? The least unread of a few replicas with
 * room. Where none has room, a turn is given when little more than a step of prompts is unread: until then the ticket waits,
 * and that is counted as its wait.
 */
export function likelyLoadOf(now: number, pool: Pick<PoolState, 'open' | 'rooms'>): Load | undefined {
  let likely: ReplicaRoom | undefined
  for (let i = 0; i < Math.min(LIKELY_LOOKS, pool.open.length); i++) {
    const room = pool.open[i] as ReplicaRoom
    if (likely === undefined || room.unreadTokens(now) < likely.unreadTokens(now)) likely = room
  }
  if (likely !== undefined) return loadAt(likely, likely.unreadTokens(now))
  let looks = 0
  for (const room of pool.rooms.values()) {
    if (!room.isReady) continue
    if (likely === undefined || room.unreadTokens(now) < likely.unreadTokens(now)) likely = room
    if (++looks === LIKELY_LOOKS) break
  }
  const stepTokens = likely?.reading?.stepTokens ?? Number.POSITIVE_INFINITY
  return likely && loadAt(likely, Math.min(stepTokens, likely.unreadTokens(now)))
}

function loadAt({ ledger }: ReplicaRoom, prefillTokens: number): Load {
  if (prefillTokens === ledger.prefillTokens) return ledger
  const { sequences, kvTokens, contextTokens, prefillMilliPerToken, readTokens, engineUs } = ledger
  return { sequences, kvTokens, contextTokens, prefillMilliPerToken, prefillTokens, readTokens, engineUs }
}
