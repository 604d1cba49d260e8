import { ChurningMap } from '../base/churning-map.ts'
import { US_PER_S } from '../base/clock.ts'
import { type TraceContext, traceIdOf } from '../base/trace-context.ts'
import type { Arrived, Entry, Granted, Settled } from '../domain/entry.ts'
import { declareArchiveMetrics } from './archive-metrics.ts'
import { declareAuditMetrics } from './audit-metrics.ts'
import { declareAutoscaleMetrics } from './autoscale-metrics.ts'
import type { Exemplar } from './cells.ts'
import { declareCostMetrics } from './cost-metrics.ts'
import { declareEfficiencyMetrics } from './efficiency-metrics.ts'
import { declareFairnessMetrics } from './fairness-metrics.ts'
import { declareFleetMetrics } from './fleet-metrics.ts'
import type { Subscriber, SubscriberView } from './journal.ts'
import { declareLatencyMetrics } from './latency-metrics.ts'
import { declareLedgerMetrics } from './ledger-metrics.ts'
import { declareMemoryMetrics } from './memory-metrics.ts'
import type { EntryOf, MetricFeed } from './metric-feed.ts'
import { declarePhaseMetrics } from './phase-metrics.ts'
import { declarePolicyMetrics } from './policy-metrics.ts'
import { declareProcessMetrics, type ProcessSample } from './process-metrics.ts'
import { EXPOSITION_CONTENT_TYPE, type FamilyView, Registry } from './registry.ts'
import { declareRequestMetrics } from './request-metrics.ts'
import { declareRetrievalMetrics } from './retrieval-metrics.ts'
import { declareRolloutMetrics } from './rollout-metrics.ts'
import { declareScreenMetrics } from './screen-metrics.ts'
import { declareSharingMetrics } from './sharing-metrics.ts'
import { declareThroughputMetrics } from './throughput-metrics.ts'
import type { TopLabelsOptions } from './top-labels.ts'

/**
 * Metrics are made here from journal entries, and nowhere else: a request that is not in the journal is not in the
 * metrics. The `…-metrics.ts` files declare metrics by topic; `metric-feed.ts` says how to add one.
 *
 * Labels are bounded: tenants by `TopLabels`, everything by the registry's `seriesMax`.
 */
export interface MetricsOptions {
  readonly version: string
  readonly nodeVersion: string
  /** The journal's own losses. */
  readonly journal?: { view(): readonly SubscriberView[] }
  /** Samples the process at every scrape (`live-process.ts`). Absent in simulated runs. */
  readonly sampleProcess?: () => ProcessSample
  readonly tenants?: Omit<TopLabelsOptions, 'onForget'>
  /** Spans for a collector. */
  readonly spans?: MeasuredSpans | undefined
}

interface MeasuredSpans {
  view(): { readonly made: number; readonly dropped: number }
  isWanted(trace: TraceContext | undefined, settled: Settled): boolean
}

/**
 * A ticket that has not settled after this long was dropped by the journal: no deadline is that far. Forgetting such
 * tickets keeps the in-flight gauge true in the long run.
 */
const TICKET_LIFE_US_MAX = 3_600 * US_PER_S

/** Live tickets remembered, bounded also without scrapes: ten times the streams that one process can hold. */
const LIVE_TICKETS_MAX = 65_536

export class Metrics implements Subscriber {
  readonly name = 'metrics'
  readonly contentType = EXPOSITION_CONTENT_TYPE
  readonly #registry = new Registry()
  readonly #handlers = new Map<string, Array<(entry: Entry) => void>>()
  /** Tickets that have arrived and not settled, oldest first. */
  readonly #live = new ChurningMap<string, Arrived>()
  readonly #spans: MeasuredSpans | undefined
  #newestAt = 0

  constructor(options: MetricsOptions) {
    this.#spans = options.spans
    const feed: MetricFeed = {
      registry: this.#registry,
      on: (kind, handler) => this.#on(kind, handler),
      ticketOf: (ticketId) => this.#live.get(ticketId),
      exemplarOf: (ending) => this.#exemplarOf(ending),
    }
    declareRequestMetrics(feed, options.tenants)
    declareLatencyMetrics(feed)
    declareFleetMetrics(feed)
    declarePolicyMetrics(feed)
    declareThroughputMetrics(feed)
    declareMemoryMetrics(feed)
    declarePhaseMetrics(feed)
    declareEfficiencyMetrics(feed)
    declareCostMetrics(feed, options.tenants)
    declareFairnessMetrics(feed)
    declareRolloutMetrics(feed)
    declareRetrievalMetrics(feed)
    declareScreenMetrics(feed)
    declareArchiveMetrics(feed)
    declareAutoscaleMetrics(feed)
    declareSharingMetrics(feed)
    declareLedgerMetrics(feed)
    declareAuditMetrics(feed)
    declareProcessMetrics(feed, options)
    this.#declareInFlight()
  }

  take(entry: Entry): void {
    if (entry.at > this.#newestAt) this.#newestAt = entry.at
    const handlers = this.#handlers.get(entry.kind)
    if (handlers !== undefined) for (let i = 0; i < handlers.length; i++) handlers[i]?.(entry)
    // The ticket is forgotten last, because a handler may ask for its arrival.
    if (entry.kind === 'arrived') this.#remember(entry)
    else if (entry.kind === 'settled') this.#live.delete(entry.ticketId)
  }

  /** The body of `/metrics`; with exemplars it is for `toOpenMetrics`. */
  text(hasExemplars = false): string {
    return this.#registry.text(hasExemplars)
  }

  families(): FamilyView[] {
    return this.#registry.families()
  }

  #on<K extends Entry['kind']>(kind: K, handler: (entry: EntryOf<K>) => void): void {
    const handlers = this.#handlers.get(kind) ?? []
    handlers.push(handler as (entry: Entry) => void)
    this.#handlers.set(kind, handlers)
  }

  #declareInFlight(): void {
    const inFlight = this.#registry.gauge({
      name: 'spillway_requests_in_flight',
      help: 'Requests that have arrived and not settled.',
    })
    this.#registry.beforeScrape(() => {
      this.#forgetLost(TICKET_LIFE_US_MAX)
      inFlight.with().set(this.#live.size)
    })
  }

  /**
   * Only a ticket of which somebody has a trace is an example: one that the sampler wants, or, where nobody collects our
   * own spans, one that its caller samples. At a grant only the caller's choice is known.
   */
  #exemplarOf(ending: Granted | Settled): Exemplar | undefined {
    const trace = this.#live.get(ending.ticketId)?.trace
    const isSampled =
      this.#spans === undefined || ending.kind === 'granted'
        ? trace?.isSampled === true
        : this.#spans.isWanted(trace, ending)
    return isSampled ? { traceId: trace?.traceId ?? traceIdOf(ending.ticketId), at: ending.at } : undefined
  }

  #remember(arrived: Arrived): void {
    if (this.#live.size >= LIVE_TICKETS_MAX) this.#forgetLost(-1)
    this.#live.set(arrived.ticketId, arrived)
  }

  /** Forgets every ticket older than `ageUsMax`; exactly the oldest one when `ageUsMax` is negative. */
  #forgetLost(ageUsMax: number): void {
    for (const [ticketId, arrived] of this.#live.entries()) {
      if (ageUsMax >= 0 && this.#newestAt - arrived.at <= ageUsMax) return
      this.#live.delete(ticketId)
      if (ageUsMax < 0) return
    }
  }
}
