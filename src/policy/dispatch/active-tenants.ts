import type { TenantBacklog } from './candidate.ts'

/** What the active tenants of a pool are promised, and what they weigh. */
export interface ActiveTenants {
  /** The weights of all active tenants together, and of the one that asks. */
  readonly activeWeight: number
  /** The tightest promise of the others. */
  readonly promiseUsMin: number
}

/** O(tenants of the pool): asked only for tickets that might hinder others. */
export function activeBeside(now: number, own: TenantBacklog, backlogs: Iterable<TenantBacklog>): ActiveTenants {
  let activeWeight = own.weight
  let promiseUsMin = Number.POSITIVE_INFINITY
  for (const backlog of backlogs) {
    if (backlog === own || !backlog.isActive(now)) continue
    activeWeight += backlog.weight
    promiseUsMin = Math.min(promiseUsMin, backlog.promiseUs)
  }
  return { activeWeight, promiseUsMin }
}
