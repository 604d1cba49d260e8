import type { SubscriberView } from './journal.ts'
import type { MetricFeed } from './metric-feed.ts'
import type { Registry } from './registry.ts'

/** Figures of this process, sampled at a scrape. */
export interface ProcessSample {
  readonly cpuSeconds: number
  readonly residentBytes: number
  readonly heapUsedBytes: number
  readonly startedAtSeconds: number
  readonly eventLoopUtilizationRatio: number
  readonly eventLoopDelaySeconds: Readonly<Record<'p50' | 'p99' | 'max', number>>
}

interface ProcessSources {
  readonly version: string
  readonly nodeVersion: string
  readonly journal?: { view(): readonly SubscriberView[] }
  readonly sampleProcess?: () => ProcessSample
  /** Spans for a collector; absent where nobody wants any. */
  readonly spans?: { view(): { readonly made: number; readonly dropped: number } } | undefined
}

/** Metrics of the process itself: sampled at the scrape, not counted from entries. */
export function declareProcessMetrics({ registry }: MetricFeed, sources: ProcessSources): void {
  const build = registry.gauge({
    name: 'spillway_build_info',
    help: 'Always 1; the labels say what is running.',
    labels: ['version', 'node'],
  })
  build.with(sources.version, sources.nodeVersion).set(1)
  const dropped = registry.counter({
    name: 'spillway_journal_dropped_total',
    help: 'Journal entries that a subscriber missed, because it was too slow or failed.',
    labels: ['subscriber'],
  })
  const spansMade = registry.counter({
    name: 'spillway_spans_total',
    help: 'Spans that were made for the collector.',
  })
  const spansDropped = registry.counter({
    name: 'spillway_spans_dropped_total',
    help: 'Spans that the collector did not take.',
  })
  registry.beforeScrape(() => {
    const spans = sources.spans?.view()
    if (spans !== undefined) {
      spansMade.with().raiseTo(spans.made)
      spansDropped.with().raiseTo(spans.dropped)
    }
    for (const view of sources.journal?.view() ?? []) dropped.with(view.name).raiseTo(view.dropped)
  })
  if (sources.sampleProcess !== undefined) declareProcess(registry, sources.sampleProcess)
}

function declareProcess(registry: Registry, sampleProcess: () => ProcessSample): void {
  const cpu = registry.counter({ name: 'process_cpu_seconds_total', help: 'CPU time used, user and system.' })
  const resident = registry.gauge({ name: 'process_resident_memory_bytes', help: 'Memory held in RAM.' })
  const started = registry.gauge({
    name: 'process_start_time_seconds',
    help: 'Start of the process, since the Unix epoch.',
  })
  const heap = registry.gauge({ name: 'spillway_heap_used_bytes', help: 'JavaScript heap in use.' })
  const busy = registry.gauge({
    name: 'spillway_event_loop_utilization_ratio',
    help: 'Share of the time since the last scrape in which the event loop was busy.',
  })
  const delay = registry.gauge({
    name: 'spillway_event_loop_delay_seconds',
    help: 'Delay of timers in the event loop since the last scrape.',
    labels: ['at'],
  })
  registry.beforeScrape(() => {
    const sample = sampleProcess()
    cpu.with().raiseTo(sample.cpuSeconds)
    resident.with().set(sample.residentBytes)
    started.with().set(sample.startedAtSeconds)
    heap.with().set(sample.heapUsedBytes)
    busy.with().set(sample.eventLoopUtilizationRatio)
    for (const at of ['p50', 'p99', 'max'] as const) delay.with(at).set(sample.eventLoopDelaySeconds[at])
  })
}
