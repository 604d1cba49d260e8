import type { MetricFeed } from './metric-feed.ts'

/** The audit: is everything written, and is it signed? */
export function declareAuditMetrics({ registry, on }: MetricFeed): void {
  const events = registry.counter({
    name: 'spillway_audit_events_total',
    help: 'Events that the audit has on the disk.',
  })
  const lost = registry.counter({
    name: 'spillway_audit_lost_total',
    help: 'Events that a full audit did not take; a gap event says how many.',
  })
  const bytes = registry.gauge({ name: 'spillway_audit_bytes', help: 'Bytes of the audit’s events on the disk.' })
  const commit = registry.gauge({
    name: 'spillway_audit_commit_max_seconds',
    help: 'Longest time from an event to its commit since the start: what a crash may lose.',
  })
  const trouble = registry.gauge({
    name: 'spillway_audit_disk_away',
    help: '1 while the audit’s disk does not take events; they wait in memory.',
  })
  const unsigned = registry.gauge({
    name: 'spillway_audit_unsigned_events',
    help: 'Events on the disk that no checkpoint has yet.',
  })
  const waiting = registry.gauge({
    name: 'spillway_audit_copy_waiting_events',
    help: 'Events on the disk that the database has no copy of yet.',
  })
  const storeAway = registry.gauge({
    name: 'spillway_audit_copy_away',
    help: '1 while the database takes no copies; events wait on the disk.',
  })
  const sinkSent = registry.counter({
    name: 'spillway_audit_checkpoints_sent_total',
    help: 'Checkpoints that a place outside has taken.',
    labels: ['sink'],
  })
  const sinkFailed = registry.counter({
    name: 'spillway_audit_checkpoints_failed_total',
    help: 'Tries to send a checkpoint that failed.',
    labels: ['sink'],
  })
  const sinkAway = registry.gauge({
    name: 'spillway_audit_sink_away',
    help: '1 while a place outside takes no checkpoints; the newest wait for it.',
    labels: ['sink'],
  })
  const sinksBefore = new Map<string, { readonly sent: number; readonly failed: number }>()
  let before: { committed: number; lost: number } | undefined
  on('audit-reported', ({ spool, lost: lostNow, checkpointSize, copy, sinks }) => {
    const { committed } = spool
    if (before !== undefined) events.with().inc(committed - before.committed)
    lost.with().inc(lostNow - (before?.lost ?? 0))
    before = { committed, lost: lostNow }
    bytes.with().set(spool.diskBytes)
    commit.with().set(spool.commitUsMax / 1_000_000)
    trouble.with().set(spool.isInTrouble ? 1 : 0)
    unsigned.with().set(committed - checkpointSize)
    waiting.with().set(copy?.waiting ?? 0)
    storeAway.with().set(copy?.isStoreAway === true ? 1 : 0)
    for (const { name, sent, failed, isAway } of sinks) {
      const known = sinksBefore.get(name)
      sinkSent.with(name).inc(sent - (known?.sent ?? 0))
      sinkFailed.with(name).inc(failed - (known?.failed ?? 0))
      sinkAway.with(name).set(isAway ? 1 : 0)
      sinksBefore.set(name, { sent, failed })
    }
  })
}
