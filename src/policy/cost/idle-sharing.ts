import { splitExactly } from './split-exactly.ts'

/** Who pays for idle time: the platform, the owners of a dedicated pool, all tenants by weight, or those who used the second. */
export type IdlePolicy = 'platform' | 'owners' | 'weights' | 'pro-rata'

export const IDLE_POLICIES: readonly IdlePolicy[] = ['platform', 'owners', 'weights', 'pro-rata']

export interface IdleSharer {
  readonly tenantId: string
  readonly weight: number
}

/** Idle money by tenant, to the last unit; nobody to share it leaves all of it with the platform. */
export function shareIdle(idleNano: number, sharers: readonly IdleSharer[]): Map<string, number> {
  const claims = sharers.filter(({ weight }) => weight > 0)
  const parts = splitExactly(
    idleNano,
    claims.map(({ weight }) => weight),
  )
  return new Map(claims.map(({ tenantId }, i) => [tenantId, parts[i] as number]))
}
