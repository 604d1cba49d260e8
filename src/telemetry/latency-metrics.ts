import { secondsToUs, US_PER_S } from '../base/clock.ts'
import type { Settled } from '../domain/entry.ts'
import { GAP_BUCKETS_US } from '../domain/gaps.ts'
import type { MetricFeed } from './metric-feed.ts'

/** From 5 ms, the time of a short cached answer, to 5 minutes, the time of a long offline one. */
const DURATION_BOUNDS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300]
/** Finer between 100 ms and 5 s, the range of first-token promises. */
const TTFT_BOUNDS_S = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30]
/** A turn without a queue takes microseconds; a queue that deserves an alert takes seconds. */
const WAIT_BOUNDS_S = [0.0001, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60]

/** Where did the time go? In microseconds inside, shown in seconds. */
export function declareLatencyMetrics(feed: MetricFeed): void {
  const { registry, on, exemplarOf } = feed
  const duration = registry.histogram({
    name: 'spillway_request_duration_seconds',
    help: 'Time from arrival to settling, for every outcome.',
    labels: ['model', 'band', 'outcome'],
    perUnit: US_PER_S,
    bounds: DURATION_BOUNDS_S.map(secondsToUs),
  })
  on('settled', (entry) => {
    const { model, band, outcome, at, arrivedAt } = entry
    duration.with(model, band, outcome).observe(at - arrivedAt, exemplarOf(entry))
  })
  declareTokenLatencies(feed)
  declareQueueWait(feed)
}

function declareTokenLatencies({ registry, on, exemplarOf }: MetricFeed): void {
  const seconds = { labels: ['model', 'band'], perUnit: US_PER_S } as const
  const timeToFirst = registry.histogram({
    ...seconds,
    name: 'spillway_time_to_first_token_seconds',
    help: 'Time from arrival to the first output token.',
    bounds: TTFT_BOUNDS_S.map(secondsToUs),
  })
  const prefill = registry.histogram({
    ...seconds,
    name: 'spillway_prefill_seconds',
    help: 'Time from the granted turn to the first output token.',
    bounds: TTFT_BOUNDS_S.map(secondsToUs),
  })
  const decode = registry.histogram({
    ...seconds,
    name: 'spillway_decode_seconds',
    help: 'Time from the first output token to the last.',
    bounds: DURATION_BOUNDS_S.map(secondsToUs),
  })
  const interToken = registry.histogram({
    ...seconds,
    name: 'spillway_inter_token_seconds',
    help: 'Time between two output tokens of one answer.',
    bounds: GAP_BUCKETS_US,
  })
  on('settled', (entry) => {
    const { model, servedModel, band, arrivedAt, grantedAt, firstTokenAt, lastTokenAt, gaps } = entry
    if (firstTokenAt === undefined) return
    const exemplar = exemplarOf(entry)
    timeToFirst.with(model, band).observe(firstTokenAt - arrivedAt, exemplar)
    if (grantedAt !== undefined) prefill.with(servedModel, band).observe(firstTokenAt - grantedAt, exemplar)
    if (lastTokenAt !== undefined) decode.with(servedModel, band).observe(lastTokenAt - firstTokenAt, exemplar)
    // The times between tokens come as counts: none of them is one ticket's figure.
    if (gaps !== undefined) interToken.with(servedModel, band).merge(gaps.counts, gaps.sumUs)
  })
}

/** Tickets that never got a turn count too: without them the histogram would look best when the queue is worst. */
function declareQueueWait({ registry, on, ticketOf, exemplarOf }: MetricFeed): void {
  const wait = registry.histogram({
    name: 'spillway_queue_wait_seconds',
    help: 'Time waiting for a turn, per granted turn; for tickets without any turn, their whole wait.',
    labels: ['model', 'band'],
    perUnit: US_PER_S,
    bounds: WAIT_BOUNDS_S.map(secondsToUs),
  })
  on('granted', (entry) => {
    const ticket = ticketOf(entry.ticketId)
    if (ticket !== undefined) wait.with(ticket.model, ticket.band).observe(entry.waitedUs, exemplarOf(entry))
  })
  on('settled', (entry) => {
    const waitedUs = waitedInVainUs(entry)
    if (waitedUs !== undefined) wait.with(entry.model, entry.band).observe(waitedUs, exemplarOf(entry))
  })
}

function waitedInVainUs({ at, admittedAt, grantedAt }: Settled): number | undefined {
  return admittedAt === undefined || grantedAt !== undefined ? undefined : at - admittedAt
}
