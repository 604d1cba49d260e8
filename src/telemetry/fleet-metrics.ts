import { Lingering } from './lingering.ts'
import type { MetricFeed } from './metric-feed.ts'

/** Metrics of replicas and faults: how attempts end, which replicas are used, what changes, what breaks. */
export function declareFleetMetrics({ registry, on }: MetricFeed): void {
  const attempts = registry.counter({
    name: 'spillway_attempts_total',
    help: 'Attempts at a replica, by how they ended.',
    labels: ['replica', 'ending'],
  })
  const unpaid = registry.counter({
    name: 'spillway_unpaid_tokens_total',
    help: 'Weighted tokens that the platform bears: work of attempts that were lost or that the platform called off.',
    labels: ['ending'],
  })
  on('attempt-ended', (entry) => {
    attempts.with(entry.replicaId, entry.ending).inc()
    if (entry.unpaidCost > 0) unpaid.with(entry.ending).inc(entry.unpaidCost)
  })

  const ready = registry.gauge({
    name: 'spillway_replica_ready',
    help: "Whether the replica's last report said ready.",
    labels: ['replica'],
  })
  on('replica-reported', (entry) => ready.with(entry.replicaId).set(entry.isReady ? 1 : 0))

  const denied = registry.gauge({
    name: 'spillway_replica_denied',
    help: 'Whether the replica\u2019s engine denies us: a wrong key or address, or a used-up quota.',
    labels: ['replica', 'pool'],
  })
  on('replica-denied', ({ replicaId, poolId, isDenied }) => denied.with(replicaId, poolId).set(isDenied ? 1 : 0))

  const health = registry.counter({
    name: 'spillway_replica_health_changes_total',
    help: 'Changes of a replica\u2019s health, by the new health.',
    labels: ['replica', 'health'],
  })
  on('replica-health', (entry) => health.with(entry.replicaId, entry.health).inc())

  const sentOn = registry.counter({
    name: 'spillway_requests_from_regions_total',
    help: 'Requests that another region\u2019s gateway sent to this one.',
    labels: ['origin'],
  })
  on('arrived', (entry) => {
    if (entry.origin !== undefined) sentOn.with(entry.origin).inc()
  })

  const changes = registry.counter({
    name: 'spillway_fleet_changes_total',
    help: 'Models, pools and replicas that were added, removed or drained.',
    labels: ['what'],
  })
  const lingering = new Lingering((replicaId) => {
    attempts.forget(replicaId)
    health.forget(replicaId)
  })
  on('fleet-changed', ({ what, name, at }) => {
    changes.with(what).inc()
    if (what === 'replica-added') lingering.back(name)
    if (what !== 'replica-removed') return
    // The gauges of a removed replica would alert for ever.
    ready.forget(name)
    denied.forget(name)
    lingering.gone(name, at)
  })

  const turnedAway = registry.counter({
    name: 'spillway_ingress_refused_total',
    help: 'Requests that were turned away before they were read.',
    labels: ['code'],
  })
  on('ingress-refused', (entry) => turnedAway.with(entry.code).inc(entry.count))

  const faults = registry.counter({
    name: 'spillway_faults_total',
    help: 'Unexpected errors, by the place that caught them.',
    labels: ['where'],
  })
  on('fault-seen', (entry) => faults.with(entry.where).inc())
}
