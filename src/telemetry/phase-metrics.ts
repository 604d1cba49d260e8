import type { MetricFeed } from './metric-feed.ts'

const MICRO = 1e-6

/**
 * What do the engines spend their time on: reading prompts or making answers? The two phases load a GPU differently
 * (prefill computes, decode reads memory), and need different remedies: shorter prompts and prefix caching, or shorter
 * answers and larger batches. Times of one request from outside are `spillway_prefill_seconds` and
 * `spillway_decode_seconds` (`latency-metrics.ts`); these are shares of steps, so they add up to the engines' busy time.
 *
 * Bound: six series.
 */
export function declarePhaseMetrics({ registry, on }: MetricFeed): void {
  const spent = registry.counter({
    name: 'spillway_engine_seconds_total',
    help: 'Engine time of requests whose cost is final, by phase: prefill, decode, again (prompts read twice).',
    labels: ['phase', 'source'],
  })
  on('cost-closed', ({ time, isMeasured }) => {
    const source = isMeasured ? 'measured' : 'estimated'
    const phases = { prefill: time.prefillUs, decode: time.decodeUs, again: time.againUs }
    for (const [phase, us] of Object.entries(phases)) if (us > 0) spent.with(phase, source).inc(us * MICRO)
  })
}
