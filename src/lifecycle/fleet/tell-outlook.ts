import type { Instant } from '../../base/clock.ts'
import type { Outlook } from '../../domain/outlook.ts'
import type { Platform } from '../platform.ts'
import type { PoolPolicies } from './pool-policies.ts'

/**
 * What do we tell the other regions of ourselves? For every model how soon a stranger's request would begin here, at the
 * best of the pools that are for everybody. Only of our own replicas: a region that counted what it could send on would
 * be believed, and the request be sent round in circles.
 */
export function tellOutlooks(platform: Platform): ReadonlyMap<string, Outlook> {
  const now = platform.world.clock.now()
  const { poolsById } = platform.policies
  const best = new Map<string, Outlook>()
  for (const known of poolsById.values()) {
    const { pool, isLocal, outlook: isPeer } = known
    if (!isLocal || isPeer !== undefined || pool.dedicatedTo !== undefined) continue
    const outlook = outlookOf(platform, now, known)
    const other = best.get(pool.model)
    if (other === undefined || isSooner(outlook, other)) best.set(pool.model, outlook)
  }
  return best
}

function outlookOf(platform: Platform, now: Instant, { pool, wait, speed, shedding }: PoolPolicies): Outlook {
  const facts = platform.policies.dispatcher.poolFacts(pool.id)
  const readyReplicaCount = platform.isSteppingDown ? 0 : (facts?.readyReplicaCount ?? 0)
  const replicaCount = facts?.replicaParts ?? 0
  const question = { ...STRANGER, hasRoom: (facts?.openReplicaCount ?? 0) > 0, replicaCount }
  return {
    readyReplicaCount,
    waitUs: readyReplicaCount === 0 ? 0 : wait.waitUs(now, question),
    prefillUsPerToken: speed.prefillUs(PROMPT_TOKENS, 0) / PROMPT_TOKENS,
    drainPerUs: readyReplicaCount === 0 ? 0 : wait.drainPerUs(now, replicaCount),
    isShedding: shedding.isShed,
  }
}

/** A chat of ordinary length, of somebody who has nothing waiting here. */
const PROMPT_TOKENS = 1_000
const NAME = { id: 'another-region', weight: 1 }
const STRANGER = { share: { org: NAME, tenant: NAME, key: NAME }, band: 'standard', cost: PROMPT_TOKENS } as const

function isSooner(one: Outlook, other: Outlook): boolean {
  if (one.readyReplicaCount > 0 !== other.readyReplicaCount > 0) return one.readyReplicaCount > 0
  return one.waitUs + one.prefillUsPerToken * PROMPT_TOKENS < other.waitUs + other.prefillUsPerToken * PROMPT_TOKENS
}
