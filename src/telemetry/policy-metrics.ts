import { Lingering } from './lingering.ts'
import type { MetricFeed } from './metric-feed.ts'

/** Metrics of the policies: queues, pressure, rungs, and how well admission predicts. */
export function declarePolicyMetrics({ registry, on }: MetricFeed): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help, labels: ['pool'] })
  const queued = gauge('spillway_queue_depth', 'Tickets waiting for a turn.')
  const queuedCost = gauge('spillway_queue_cost', 'Predicted work of the waiting tickets, in weighted tokens.')
  const held = gauge('spillway_pool_in_flight', 'Leases held at the replicas of the pool.')
  const pressure = gauge('spillway_pool_pressure', 'Backlog ÷ tightest first-token promise: 1 is full.')
  const falseRejects = gauge(
    'spillway_admission_false_rejects',
    'Requests refused as too late that would have been in time, and made no other late.',
  )
  const rightRejects = gauge(
    'spillway_admission_right_rejects',
    'Requests refused as too late that would have been late, or have made another late.',
  )
  const observed = registry.gauge({
    name: 'spillway_admission_observed',
    help: 'Admitted tickets whose prediction was compared with what happened, since the start.',
  })
  const falseAdmits = registry.gauge({
    name: 'spillway_admission_false_admits',
    help: 'Observed admitted tickets that were late, expired or evicted.',
  })
  on('pool-reported', (entry) => {
    queued.with(entry.poolId).set(entry.queuedCount)
    queuedCost.with(entry.poolId).set(entry.queuedCost)
    held.with(entry.poolId).set(entry.heldCount)
    pressure.with(entry.poolId).set(entry.pressure)
    falseRejects.with(entry.poolId).set(entry.falseRejects)
    rightRejects.with(entry.poolId).set(entry.rightRejects)
    observed.with().set(entry.observedCount)
    falseAdmits.with().set(entry.falseAdmits)
  })

  const changes = registry.counter({
    name: 'spillway_rung_changes_total',
    help: 'Tenants moved to another rung for some time, by the new rung.',
    labels: ['pool', 'rung'],
  })
  on('rung-changed', (entry) => changes.with(entry.poolId, entry.to).inc())

  const degraded = registry.counter({
    name: 'spillway_degraded_total',
    help: 'Completed answers below the full rung, by rung.',
    labels: ['model', 'rung'],
  })
  const slots = registry.counter({
    name: 'spillway_return_slots_total',
    help: 'Times to come back: room kept (given) or not (none), and whether it was there for who came (kept, broken).',
    labels: ['outcome'],
  })
  on('admitted', ({ isOnSlot }) => {
    if (isOnSlot === true) slots.with('kept').inc()
  })
  on('settled', ({ refusal }) => {
    if (refusal?.slot !== undefined) slots.with(refusal.slot).inc()
    if (refusal?.isSlotBroken === true) slots.with('broken').inc()
  })
  on('settled', (entry) => {
    if (entry.outcome === 'completed' && entry.rung !== 'full') degraded.with(entry.model, entry.rung).inc()
  })

  const shedding = registry.gauge({
    name: 'spillway_offline_shedding',
    help: 'Whether the pool refuses offline requests of all tenants.',
    labels: ['pool'],
  })
  on('offline-shedding-changed', (entry) => shedding.with(entry.poolId).set(entry.isShed ? 1 : 0))

  const lingering = new Lingering((poolId) => changes.forget(poolId))
  const gauges = [queued, queuedCost, held, pressure, falseRejects, rightRejects, shedding]
  on('fleet-changed', ({ what, name, at }) => {
    if (what === 'pool-added') lingering.back(name)
    if (what !== 'pool-removed') return
    for (const gauge of gauges) gauge.forget(name)
    lingering.gone(name, at)
  })
}
