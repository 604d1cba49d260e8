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
  const left = registry.gauge({
    name: 'spillway_budget_left_ratio',
    help: 'Share of a budget that is neither used nor held, of the budgets that are nearest to their end.',
    labels: ['scope', 'name', 'period', 'kind'],
  })
  const unknown = registry.gauge({
    name: 'spillway_budget_unknown',
    help: 'Budgets of which the ledger has not said yet what was used.',
  })
  const marks = registry.counter({
    name: 'spillway_budget_marks_total',
    help: 'Marks of budgets that were passed, by scope.',
    labels: ['scope'],
  })
  on('budget-marked', ({ scope }) => marks.with(scope).inc(1))
  on('budgets-reported', ({ budgets, unknownCount }) => {
    for (const scope of ['org', 'tenant', 'key', 'model']) left.forget(scope)
    for (const { scope, scopeId, period, isHard, leftRatio } of budgets)
      left.with(scope, scopeId, period, isHard ? 'hard' : 'soft').set(leftRatio)
    unknown.with().set(unknownCount)
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
