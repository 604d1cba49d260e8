import type { ArchiveErasure, NotArchived } from '../domain/archive.ts'
import type { MetricFeed } from './metric-feed.ts'

/** Answers that clients asked to store: written, lost, erased. */
export function declareArchiveMetrics({ registry, on }: MetricFeed): void {
  const writes = registry.counter({
    name: 'spillway_archive_writes_total',
    help: 'Finished answers that were to be stored, by what became of them.',
    labels: ['outcome'],
  })
  for (const outcome of OUTCOMES) writes.with(outcome).inc(0)
  on('archive-written', ({ outcome, count }) => writes.with(outcome).inc(count))
  const erased = registry.counter({
    name: 'spillway_archive_erased_total',
    help: 'Stored answers that were erased without a client\u2019s order, by reason.',
    labels: ['because'],
  })
  for (const because of ERASURES) erased.with(because).inc(0)
  on('archive-erased', ({ because, count }) => erased.with(because).inc(count))
}

const OUTCOMES: ReadonlyArray<'kept' | NotArchived> = [
  'kept',
  'too-large',
  'queue-full',
  'store-away',
  'tenant-removed',
]
const ERASURES: readonly ArchiveErasure[] = ['expired', 'made-room', 'tenant-removed']
