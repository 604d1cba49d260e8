import { Lingering } from './lingering.ts'
import type { MetricFeed } from './metric-feed.ts'

/** What do replicas do with what they are given, and what breaks? */
export function declareFleetMetrics({ registry, on }: MetricFeed): void {
  const attempts = registry.counter({
    name: 'spillway_attempts_total',
    help: 'Tries at a replica, by how they ended.',
    labels: ['replica', 'ending'],
  })
  on('attempt-ended', (entry) => attempts.with(entry.replicaId, entry.ending).inc())

  const ready = registry.gauge({
    name: 'spillway_replica_ready',
    help: 'Whether the replica last said that it is ready.',
    labels: ['replica'],
  })
  on('replica-reported', (entry) => ready.with(entry.replicaId).set(entry.isReady ? 1 : 0))

  const health = registry.counter({
    name: 'spillway_replica_health_changes_total',
    help: 'Replicas that are used more, less or not at all from there on, by what they became.',
    labels: ['replica', 'health'],
  })
  on('replica-health', (entry) => health.with(entry.replicaId, entry.health).inc())

  const sentOn = registry.counter({
    name: 'spillway_requests_from_regions_total',
    help: 'Requests that another region\u2019s gateway sent on to this one.',
    labels: ['origin'],
  })
  on('arrived', (entry) => {
    if (entry.origin !== undefined) sentOn.with(entry.origin).inc()
  })

  const changes = registry.counter({
    name: 'spillway_fleet_changes_total',
    help: 'Models, pools and replicas that came, went or were drained.',
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
    // A gauge of something that is not there would alert for ever.
    ready.forget(name)
    lingering.gone(name, at)
  })

  const faults = registry.counter({
    name: 'spillway_faults_total',
    help: 'Errors that nobody expected, by where they were caught.',
    labels: ['where'],
  })
  on('fault-seen', (entry) => faults.with(entry.where).inc())
}
