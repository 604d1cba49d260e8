import type { Instant } from '../base/clock.ts'
import type { BackloggedTenant } from '../domain/share-path.ts'
import type { MetricFeed } from './metric-feed.ts'
import { MinuteRate } from './minute-rate.ts'

/**
 * Do the tenants that wait get their shares? Jain's index (Jain, Chiu and Hawe, 1984) over the last minute, of the work
 * that each was served divided by its share of the pool: (Σx)² ÷ (n · Σx²), 1 when all have had the same by their share,
 * 1/n when one had everything. Only tenants that have had something waiting nearly all the time are compared: who asks
 * for less than its share has less, and nothing is unfair about it.
 *
 * Work counts when its request settles, so a pool whose answers take a minute shows an index that jumps.
 *
 * Bounds: `FOLLOWED_MAX` tenants a pool; a tenant is forgotten when it has not waited for a minute, a pool when it is
 * removed.
 * Example: shares ½, ¼, ¼, served 600, 300, 300: x is 1,200 for each, the index 1. Served 900, 150, 150: x is 1,800, 600
 * and 600, the index 0.76.
 */
export function declareFairnessMetrics({ registry, on }: MetricFeed): void {
  const index = registry.gauge({
    name: 'spillway_pool_fairness_index',
    help: 'Jain\u2019s index of work served by share, of the tenants that waited nearly all of the last minute.',
    labels: ['pool'],
  })
  const compared = registry.gauge({
    name: 'spillway_pool_backlogged_tenants',
    help: 'Tenants that had something waiting nearly all of the last minute.',
    labels: ['pool'],
  })
  const pools = new Map<string, PoolFairness>()
  on('settled', ({ at, poolId, tenantId, band, cost }) => {
    // Offline work has what is left over, and no share.
    if (poolId !== undefined && band !== 'offline') pools.get(poolId)?.served(at, tenantId, cost)
  })
  on('pool-reported', ({ at, poolId, backlogged = [] }) => {
    const pool = pools.get(poolId) ?? new PoolFairness()
    pools.set(poolId, pool)
    pool.tick(at, backlogged)
    const rates = pool.servedByShare(at)
    compared.with(poolId).set(rates.length)
    const jain = jainOf(rates)
    if (jain === undefined) index.forget(poolId)
    else index.with(poolId).set(jain)
  })
  on('fleet-changed', ({ what, name }) => {
    if (what !== 'pool-removed') return
    pools.delete(name)
    index.forget(name)
    compared.forget(name)
  })
}

/** Tenants followed at a pool: twice what one report tells of. */
const FOLLOWED_MAX = 200
/** Share of the last minute's ticks at which a tenant must have had something waiting. */
const BACKLOGGED_RATIO = 0.9
/** Ticks that the comparison needs: the shares of a few seconds say little, because work counts when it has ended. */
const TICKS_MIN = 30
/** A `MinuteRate` is a sum over 60 s, told for one. */
const SECONDS = 60

interface Followed {
  readonly ticks: MinuteRate
  /** Sum of its shares at these ticks. */
  readonly shares: MinuteRate
  readonly served: MinuteRate
}

class PoolFairness {
  readonly #ticks = new MinuteRate()
  readonly #tenants = new Map<string, Followed>()

  served(at: Instant, tenantId: string, cost: number): void {
    this.#tenants.get(tenantId)?.served.add(at, cost)
  }

  tick(at: Instant, backlogged: readonly BackloggedTenant[]): void {
    this.#ticks.add(at, 1)
    for (const [tenantId, { ticks }] of this.#tenants) if (ticks.perSecond(at) === 0) this.#tenants.delete(tenantId)
    for (const { tenantId, share } of backlogged) {
      const tenant = this.#tenants.get(tenantId) ?? this.#follow(tenantId)
      tenant?.ticks.add(at, 1)
      tenant?.shares.add(at, share)
    }
  }

  servedByShare(at: Instant): number[] {
    const ticks = this.#ticks.perSecond(at)
    if (ticks * SECONDS < TICKS_MIN) return []
    const pressed = [...this.#tenants.values()].filter(
      (tenant) => tenant.ticks.perSecond(at) >= BACKLOGGED_RATIO * ticks,
    )
    return pressed.map(({ served, shares }) => served.perSecond(at) / shares.perSecond(at))
  }

  #follow(tenantId: string): Followed | undefined {
    if (this.#tenants.size >= FOLLOWED_MAX) return undefined
    const tenant = { ticks: new MinuteRate(), shares: new MinuteRate(), served: new MinuteRate() }
    this.#tenants.set(tenantId, tenant)
    return tenant
  }
}

/** Undefined where there is nothing to compare, or nothing was served. */
function jainOf(rates: readonly number[]): number | undefined {
  const sum = rates.reduce((total, rate) => total + rate, 0)
  const squares = rates.reduce((total, rate) => total + rate * rate, 0)
  return rates.length < 2 || squares === 0 ? undefined : (sum * sum) / (rates.length * squares)
}
