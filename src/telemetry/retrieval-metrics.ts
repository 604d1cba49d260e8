import { secondsToUs, US_PER_S } from '../base/clock.ts'
import { RETRIEVAL_OUTCOMES } from '../domain/corpus.ts'
import type { AnswerLookup } from '../domain/entry.ts'
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

  declareAnswerMetrics({ registry, on })

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

/** How often is an answer known, what does that spare the engines, and how often would it have been the wrong one? */
function declareAnswerMetrics({ registry, on }: Pick<MetricFeed, 'registry' | 'on'>): void {
  const lookups = registry.counter({
    name: 'spillway_answer_lookups_total',
    help: 'Questions that the answer cache was asked, by how that ended.',
    labels: ['outcome'],
  })
  for (const outcome of ANSWER_LOOKUPS) lookups.with(outcome).inc(0)
  const seconds = registry.histogram({
    name: 'spillway_answer_lookup_seconds',
    help: 'How long a request waited for the answer cache.',
    labels: [],
    perUnit: US_PER_S,
    bounds: RETRIEVAL_BOUNDS_S.map(secondsToUs),
  })
  const saved = registry.counter({
    name: 'spillway_answer_saved_tokens_total',
    help: 'Tokens that no engine had to compute, because the answer was known.',
    labels: ['kind'],
  })
  on('answer-looked-up', (entry) => {
    lookups.with(entry.outcome).inc()
    seconds.with().observe(entry.tookUs)
    saved.with('prompt').inc(entry.saved.promptTokens)
    saved.with('output').inc(entry.saved.outputTokens)
  })
  const checks = registry.counter({
    name: 'spillway_answer_checks_total',
    help: 'Known answers that were made anew and compared, by whether they were the same.',
    labels: ['verdict'],
  })
  for (const verdict of ['same', 'different']) checks.with(verdict).inc(0)
  on('answer-checked', (entry) => checks.with(entry.isSame ? 'same' : 'different').inc())
}

const ANSWER_LOOKUPS: readonly AnswerLookup[] = ['hit', 'miss', 'checked', 'skipped']
