import type { TenantBacklog } from './candidate.ts'

/** The active tenants of a pool, the one that asks first, and what the others are promised. */
export interface ActiveTenants {
  readonly active: readonly TenantBacklog[]
  /** The tightest promise of the others. */
  readonly promiseUsMin: number
}

/** O(tenants of the pool): asked only for tickets that might hinder others. */
export function activeBeside(now: number, own: TenantBacklog, backlogs: Iterable<TenantBacklog>): ActiveTenants {
  const active = [own]
  let promiseUsMin = Number.POSITIVE_INFINITY
  for (const backlog of backlogs) {
    if (backlog === own || !backlog.isActive(now)) continue
    active.push(backlog)
    promiseUsMin = Math.min(promiseUsMin, backlog.promiseUs)
  }
  return { active, promiseUsMin }
}
