import type { Instant } from '../../base/clock.ts'
import type { AutoscaleReported } from '../../domain/scale-entry.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'
import { type Before, lookAtPool, NOTHING_BEFORE } from './look-at-pool.ts'
import { ScaleOrders } from './scale-orders.ts'
import type { ScalingParts } from './scaling-parts.ts'

/**
 * How many replicas should every pool have, and who is told? With every tick each pool of engines is looked at, its signals
 * are journalled (for metrics, and for whoever asks by HTTP), and the leader carries out what is wanted where the pool's
 * writer is Spillway (`scale-orders.ts`). Between ticks, the first request at a pool that sleeps wakes it at once.
 *
 * One writer, ever: with `external` nothing is ordered here, with `none` nobody acts on the signals.
 * Bound: one record for each pool.
 */
export class Autoscaling {
  readonly #platform: ScalingParts
  readonly #pools = new Map<string, { before: Before; readonly orders: ScaleOrders; signals: AutoscaleReported }>()

  constructor(platform: ScalingParts) {
    this.#platform = platform
  }

  tick(now: Instant): void {
    const { poolsById } = this.#platform.policies
    for (const poolId of this.#pools.keys()) if (!poolsById.has(poolId)) this.#pools.delete(poolId)
    for (const known of poolsById.values()) {
      if (known.pool.isPeer === true) continue
      this.#look(now, known)
      if (known.scaler.terms.writer === 'spillway') this.#pools.get(known.pool.id)?.orders.step(now)
    }
  }

  /** Something is asked of a pool, here or at another gateway. */
  asked(poolId: string): void {
    const known = this.#platform.policies.poolsById.get(poolId)
    if (known === undefined || known.scaler.terms.writer !== 'spillway') return
    const now = this.#platform.world.clock.now()
    if (known.scaler.wake(now) !== undefined) this.#pools.get(poolId)?.orders.step(now)
  }

  /** What is told of this pool; undefined when there is none, or nothing was seen of it yet. */
  signalsOf(poolId: string): AutoscaleReported | undefined {
    return this.#pools.get(poolId)?.signals
  }

  #look(now: Instant, known: PoolPolicies): void {
    const { pool, scaler } = known
    const kept = this.#pools.get(pool.id)
    const before = kept?.before ?? { ...NOTHING_BEFORE, ...known.offered.total, at: now }
    const { look, after } = lookAtPool(this.#platform, known, now, before)
    if (look.readyCount === 0 && scaler.terms.writer !== 'none') known.wait.nobodyWorks(now)
    scaler.look(now, look)
    const signals = this.#signals(now, known, look.workRatio)
    if (kept === undefined) this.#pools.set(pool.id, { before: after, signals, orders: this.#ordersOf(known) })
    else Object.assign(kept, { before: after, signals })
    scaler.isFailing = this.#pools.get(pool.id)?.orders.isFailing ?? false
    this.#platform.world.journal.record(signals)
  }

  #ordersOf(known: PoolPolicies): ScaleOrders {
    const { world } = this.#platform
    const actuator = () => world.actuators?.of(known.pool.id)
    return new ScaleOrders({ platform: this.#platform, known, actuator, drains: world.cellDrains })
  }

  #signals(now: Instant, known: PoolPolicies, workRatio: number | undefined): AutoscaleReported {
    const { pool, attainment, reports, scaler } = known
    const { desired, readyCount, pendingCount, demandPerUs, backlogUs, queuedCount, isActive, coldStartUs } =
      scaler.view
    const gpuUseRatio = this.#platform.world.actuators?.gpuUseRatio?.(pool.id) ?? workRatio
    const kvUseRatio = reports.kvUseRatio(pool.replicas)
    return {
      kind: 'autoscale-reported',
      at: now,
      poolId: pool.id,
      desired,
      readyCount,
      pendingCount,
      demandPerUs,
      backlogUs,
      queuedCount,
      isActive,
      coldStartUs,
      attainmentRatio: attainment.ratio,
      ...(gpuUseRatio !== undefined && { gpuUseRatio }),
      ...(kvUseRatio !== undefined && { kvUseRatio }),
    }
  }
}
