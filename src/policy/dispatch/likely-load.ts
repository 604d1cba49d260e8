import type { Load } from '../limits/ledger.ts'
import type { PoolState } from './pool-state.ts'
import type { ReplicaRoom } from './replica-room.ts'

/** Replicas that are looked at to know the load of the likely one: a placer finds one that is as little loaded. */
const LIKELY_LOOKS = 8

/** What is in flight where the next ticket would probably go: the least unread of a few replicas with room. */
export function likelyLoadOf(pool: Pick<PoolState, 'open' | 'rooms'>): Load | undefined {
  let likely: Load | undefined
  for (let i = 0; i < Math.min(LIKELY_LOOKS, pool.open.length); i++) {
    const { ledger } = pool.open[i] as ReplicaRoom
    if (likely === undefined || ledger.prefillTokens < likely.prefillTokens) likely = ledger
  }
  if (likely !== undefined) return likely
  let looks = 0
  for (const { isReady, ledger } of pool.rooms.values()) {
    if (!isReady) continue
    if (likely === undefined || ledger.prefillTokens < likely.prefillTokens) likely = ledger
    if (++looks === LIKELY_LOOKS) break
  }
  return likely
}
