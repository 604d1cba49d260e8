import { secondsToUs, US_PER_S } from '../base/clock.ts'
import { RETRIEVAL_OUTCOMES } from '../domain/corpus.ts'
import type { MetricFeed } from './metric-feed.ts'

/** A cached lookup takes 50 µs; the budget is 150 ms unless somebody changed it. */
const RETRIEVAL_BOUNDS_S = [0.0005, 0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1]

/** Do requests get their passages, how long do they wait for them, and what is left alone because it failed? */
export function declareRetrievalMetrics({ registry, on }: MetricFeed): void {
  const retrievals = registry.counter({
    name: 'spillway_retrievals_total',
    help: 'Retrievals for requests, by how they ended.',
    labels: ['outcome'],
  })
  for (const outcome of RETRIEVAL_OUTCOMES) retrievals.with(outcome).inc(0)
  const seconds = registry.histogram({
    name: 'spillway_retrieval_seconds',
    help: 'How long a request waited for its passages, by how that ended.',
    labels: ['outcome'],
    perUnit: US_PER_S,
    bounds: RETRIEVAL_BOUNDS_S.map(secondsToUs),
  })
  const passages = registry.counter({
    name: 'spillway_retrieved_passages_total',
    help: 'Passages that went into prompts.',
  })
  on('retrieval-ended', (entry) => {
    retrievals.with(entry.outcome).inc()
    seconds.with(entry.outcome).observe(entry.tookUs)
    passages.with().inc(entry.passageCount)
  })

  const open = registry.gauge({
    name: 'spillway_breaker_open',
    help: 'Whether this is left alone for a while after failures.',
    labels: ['what'],
  })
  on('breaker-changed', (entry) => open.with(entry.what).set(entry.state === 'open' ? 1 : 0))

  const documents = registry.counter({
    name: 'spillway_documents_indexed_total',
    help: 'Documents whose indexing has ended, by how.',
    labels: ['status'],
  })
  const indexed = registry.counter({
    name: 'spillway_passages_indexed_total',
    help: 'Passages of documents that were indexed.',
  })
  on('document-indexed', (entry) => {
    documents.with(entry.status).inc()
    if (entry.status === 'completed') indexed.with().inc(entry.passageCount)
  })
}
