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

  const faults = registry.counter({
    name: 'spillway_faults_total',
    help: 'Errors that nobody expected, by where they were caught.',
    labels: ['where'],
  })
  on('fault-seen', (entry) => faults.with(entry.where).inc())
}
