import type { MetricFeed } from './metric-feed.ts'

/** Metrics of autoscaling: the same signals as `GET /autoscale/{pool}`, and what was ordered. */
export function declareAutoscaleMetrics({ registry, on }: MetricFeed): void {
  const gauge = (name: string, help: string) =>
    registry.gauge({ name: `spillway_autoscale_${name}`, help, labels: ['pool'] })
  const desired = gauge('desired_replicas', 'Replicas that the pool should have.')
  const ready = gauge('ready_replicas', 'Replicas that are ready.')
  const pending = gauge('pending_replicas', 'Replicas that were ordered or listed and are not ready yet.')
  const demand = gauge(
    'demand_tokens_per_second',
    'Offered work in weighted tokens a second, refused or not, of all gateways.',
  )
  const backlog = gauge('backlog_seconds', 'Time that the ready replicas need for what waits.')
  const queue = gauge('queue_depth', 'Tickets that wait, of all gateways.')
  const attainment = gauge(
    'slo_attainment_ratio',
    'Share of the last minute\u2019s requests that were served as promised.',
  )
  const activation = gauge('activation', 'Whether the pool should have a replica at all.')
  const coldStart = gauge('cold_start_seconds', 'Time from an order to a ready replica, as learned.')
  const gpuUse = gauge('gpu_use_ratio', 'Share of what the GPUs could do, by their exporter or their engines.')
  const kvUse = gauge('kv_use_ratio', 'Share of the KV memory in use, a mean over ready replicas.')
  on('autoscale-reported', (entry) => {
    const { poolId } = entry
    desired.with(poolId).set(entry.desired)
    ready.with(poolId).set(entry.readyCount)
    pending.with(poolId).set(entry.pendingCount)
    demand.with(poolId).set(entry.demandPerUs * 1_000_000)
    backlog.with(poolId).set(entry.backlogUs / 1_000_000)
    queue.with(poolId).set(entry.queuedCount)
    attainment.with(poolId).set(entry.attainmentRatio)
    activation.with(poolId).set(entry.isActive ? 1 : 0)
    coldStart.with(poolId).set(entry.coldStartUs / 1_000_000)
    if (entry.gpuUseRatio !== undefined) gpuUse.with(poolId).set(entry.gpuUseRatio)
    if (entry.kvUseRatio !== undefined) kvUse.with(poolId).set(entry.kvUseRatio)
  })
  on('fleet-changed', ({ what, name }) => {
    if (what !== 'pool-removed') return
    for (const one of [
      desired,
      ready,
      pending,
      demand,
      backlog,
      queue,
      attainment,
      activation,
      coldStart,
      gpuUse,
      kvUse,
    ])
      one.forget(name)
  })
  const orders = registry.counter({
    name: 'spillway_autoscale_orders_total',
    help: 'Orders of another number of replicas, by direction and outcome.',
    labels: ['pool', 'direction', 'outcome'],
  })
  on('scale-ordered', ({ poolId, from, to, outcome }) =>
    orders.with(poolId, to > from ? 'up' : to < from ? 'down' : 'again', outcome).inc(),
  )
}
