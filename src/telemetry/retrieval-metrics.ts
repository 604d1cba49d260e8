import { secondsToUs, US_PER_S } from '../base/clock.ts'
import { RETRIEVAL_OUTCOMES } from '../domain/corpus.ts'
import type { AnswerLookup } from '../domain/entry.ts'
import type { MetricFeed } from './metric-feed.ts'

/** A cached lookup takes 50 µs; the default budget is 150 ms. */
const RETRIEVAL_BOUNDS_S = [0.0005, 0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1]

/** Metrics of retrieval: how retrievals end, how long requests wait for passages, which breakers are open. */
export function declareRetrievalMetrics({ registry, on }: MetricFeed): void {
  const retrievals = registry.counter({
    name: 'spillway_retrievals_total',
    help: 'Retrievals for requests, by how they ended.',
    labels: ['outcome'],
  })
  for (const outcome of RETRIEVAL_OUTCOMES) retrievals.with(outcome).inc(0)
  const seconds = registry.histogram({
    name: 'spillway_retrieval_seconds',
    help: 'Time that a request waited for its passages, by how the retrieval ended.',
    labels: ['outcome'],
    perUnit: US_PER_S,
    bounds: RETRIEVAL_BOUNDS_S.map(secondsToUs),
  })
  const passages = registry.counter({
    name: 'spillway_retrieved_passages_total',
    help: 'Passages added to prompts.',
  })
  on('retrieval-ended', (entry) => {
    retrievals.with(entry.outcome).inc()
    seconds.with(entry.outcome).observe(entry.tookUs)
    passages.with().inc(entry.passageCount)
  })

  declareAnswerMetrics({ registry, on })

  const open = registry.gauge({
    name: 'spillway_breaker_open',
    help: 'Whether a breaker leaves this part alone after failures.',
    labels: ['what'],
  })
  on('breaker-changed', (entry) => open.with(entry.what).set(entry.state === 'open' ? 1 : 0))

  const documents = registry.counter({
    name: 'spillway_documents_indexed_total',
    help: 'Documents whose indexing has ended: completed or failed.',
    labels: ['status'],
  })
  const indexed = registry.counter({
    name: 'spillway_passages_indexed_total',
    help: 'Passages of completely indexed documents.',
  })
  on('document-indexed', (entry) => {
    documents.with(entry.status).inc()
    if (entry.status === 'completed') indexed.with().inc(entry.passageCount)
  })
}

/** Metrics of the answer cache: hits, saved tokens, and how often a cached answer differs from a new one. */
function declareAnswerMetrics({ registry, on }: Pick<MetricFeed, 'registry' | 'on'>): void {
  const lookups = registry.counter({
    name: 'spillway_answer_lookups_total',
    help: 'Lookups in the answer cache, by outcome.',
    labels: ['outcome'],
  })
  for (const outcome of ANSWER_LOOKUPS) lookups.with(outcome).inc(0)
  const seconds = registry.histogram({
    name: 'spillway_answer_lookup_seconds',
    help: 'Time that a request waited for the answer cache.',
    labels: [],
    perUnit: US_PER_S,
    bounds: RETRIEVAL_BOUNDS_S.map(secondsToUs),
  })
  const saved = registry.counter({
    name: 'spillway_answer_saved_tokens_total',
    help: 'Tokens that no engine computed because the answer came from the cache.',
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
    help: 'Cached answers that were generated again and compared, by whether the two were the same.',
    labels: ['verdict'],
  })
  for (const verdict of ['same', 'different']) checks.with(verdict).inc(0)
  on('answer-checked', (entry) => checks.with(entry.isSame ? 'same' : 'different').inc())
}

const ANSWER_LOOKUPS: readonly AnswerLookup[] = ['hit', 'miss', 'checked', 'skipped']
