import type { MetricFeed } from './metric-feed.ts'

/** The spool and the ledger: is everything that was used written down? */
export function declareLedgerMetrics({ registry, on }: MetricFeed): void {
  const lines = registry.counter({
    name: 'spillway_ledger_lines_total',
    help: 'Lines that were written to the ledger.',
  })
  const waiting = registry.gauge({
    name: 'spillway_ledger_waiting_records',
    help: 'Records on the disk that are not yet in the ledger.',
  })
  const isAway = registry.gauge({
    name: 'spillway_ledger_store_away',
    help: '1 while the ledger’s database does not take lines; they wait on the disk.',
  })
  const lost = registry.counter({
    name: 'spillway_spool_lost_total',
    help: 'Records that a full spool did not take: what was used and is written down nowhere.',
  })
  const bytes = registry.gauge({ name: 'spillway_spool_bytes', help: 'Bytes of the spool on the disk.' })
  const commit = registry.gauge({
    name: 'spillway_spool_commit_max_seconds',
    help: 'Longest time from a record to its commit since the start: what a crash may lose.',
  })
  const before = { lines: 0, lost: 0 }
  on('ledger-reported', ({ spool, keeper }) => {
    lines.with().inc(keeper.written - before.lines)
    lost.with().inc(spool.refused - before.lost)
    before.lines = keeper.written
    before.lost = spool.refused
    waiting.with().set(keeper.waiting)
    isAway.with().set(keeper.isStoreAway ? 1 : 0)
    bytes.with().set(spool.diskBytes)
    commit.with().set(spool.commitUsMax / 1_000_000)
  })
}
