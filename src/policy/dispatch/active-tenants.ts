import type { TenantBacklog } from './candidate.ts'
import { PromiseGroup } from './promise-group.ts'

/**
 * Which tenants of a pool are active, and what are they promised? A tenant is active while something of it waits or runs,
 * and for the time of its promise after that.
 *
 * The tightest promise of the others is asked for nearly every ticket of a busy pool, so it is not searched among the
 * tenants: tenants that are promised the same form a group, which knows how many of them are at work and who was seen
 * last. Promises are few, because tenants have theirs from named SLOs.
 *
 * Deliberately not: whoever has changed its group counts in the old one, for the time of that promise at most.
 */

export class ActivePromises {
  readonly #groups = new Map<number, PromiseGroup>()

  groupOf(promiseUs: number): PromiseGroup {
    let group = this.#groups.get(promiseUs)
    if (group === undefined) {
      group = new PromiseGroup(promiseUs)
      this.#groups.set(promiseUs, group)
    }
    return group
  }

  /** The tightest promise of active tenants other than this one; infinite when it is alone. */
  tightestBeside(now: number, own: TenantBacklog): number {
    let tightestUs = Number.POSITIVE_INFINITY
    for (const group of this.#groups.values()) {
      if (group.promiseUs < tightestUs && group.hasActiveBeside(now, own)) tightestUs = group.promiseUs
    }
    return tightestUs
  }

  /** Groups that nobody is in are let go. */
  forgetUnused(backlogs: Iterable<TenantBacklog>): void {
    const used = new Set<PromiseGroup | undefined>()
    for (const { group } of backlogs) used.add(group)
    for (const [promiseUs, group] of this.#groups) if (!used.has(group)) this.#groups.delete(promiseUs)
  }
}

/** The active tenants of a pool, the one that asks first. O(tenants of the pool): asked where their shares count. */
export function activeBeside(now: number, own: TenantBacklog, backlogs: Iterable<TenantBacklog>): TenantBacklog[] {
  const active = [own]
  for (const backlog of backlogs) if (backlog !== own && backlog.isActive(now)) active.push(backlog)
  return active
}
