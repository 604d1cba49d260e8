import { describe, expect, it } from 'vitest'
import { parseExposition, sampleValue } from '../../test/support/parse-exposition.ts'
import { lastingMetrics, mergeMetrics } from './merge-metrics.ts'
import { Metrics } from './metrics.ts'
import { Registry } from './registry.ts'

function textOf(scale: number): string {
  const registry = new Registry()
  const counter = registry.counter({ name: 'spillway_x_total', help: 'Counted.', labels: ['tenant'] })
  counter.with('acme').raiseTo(scale)
  counter.with('a"b\\c d').raiseTo(2 * scale)
  registry
    .gauge({ name: 'spillway_queue_depth', help: 'Waiting.', labels: ['pool'] })
    .with('p')
    .set(scale)
  registry.gauge({ name: 'spillway_heap_used_bytes', help: 'Heap.' }).with().set(scale)
  registry
    .gauge({ name: 'spillway_event_loop_delay_seconds', help: 'Late.', labels: ['at'] })
    .with('p99')
    .set(scale)
  registry
    .gauge({ name: 'spillway_replica_ready', help: 'Ready.', labels: ['replica'] })
    .with('r')
    .set(1)
  registry
    .gauge({ name: 'spillway_pool_fairness_index', help: 'Fair.', labels: ['pool'] })
    .with('p')
    .set(1 / scale)
  registry
    .gauge({ name: 'spillway_pool_usd_per_million_tokens', help: 'Price.', labels: ['pool'] })
    .with('p')
    .set(4)
  const histogram = registry.histogram({ name: 'spillway_wait_seconds', help: 'Waits.', bounds: [1, 8] }).with()
  for (let i = 0; i < scale; i++) histogram.observe(i)
  return registry.text()
}

const merged = mergeMetrics([
  { process: 1, text: textOf(1) },
  { process: 2, text: textOf(10) },
])

describe('metrics of a host', () => {
  it.each([
    ['counters add', 'spillway_x_total', { tenant: 'acme' }, 11],
    ['odd labels stay one series', 'spillway_x_total', { tenant: 'a"b\\c d' }, 22],
    ['gauges of things that each process has add', 'spillway_queue_depth', { pool: 'p' }, 11],
    ['buckets add', 'spillway_wait_seconds_bucket', { le: '1' }, 3],
    ['sums of histograms add', 'spillway_wait_seconds_sum', {}, 45],
    ['counts of histograms add', 'spillway_wait_seconds_count', {}, 11],
    ['what all know is said once', 'spillway_replica_ready', { replica: 'r' }, 1],
    ['the least fair process counts', 'spillway_pool_fairness_index', { pool: 'p' }, 0.1],
    ['half of the tokens each: half of the price', 'spillway_pool_usd_per_million_tokens', { pool: 'p' }, 2],
    ['memory is each process’s own', 'spillway_heap_used_bytes', { process: '2' }, 10],
    ['with its other labels', 'spillway_event_loop_delay_seconds', { at: 'p99', process: '1' }, 1],
  ])('%s', (_what, name, labels, value) => expect(sampleValue(merged, name, labels)).toBe(value))

  it('keeps counters and histograms of a process that has ended, and no gauges', () => {
    const lasting = lastingMetrics([{ process: 1, text: textOf(1) }])
    expect(sampleValue(lasting, 'spillway_x_total', { tenant: 'acme' })).toBe(1)
    expect(sampleValue(lasting, 'spillway_queue_depth', { pool: 'p' })).toBeUndefined()
    const all = mergeMetrics([
      { process: 2, text: textOf(10) },
      { process: undefined, text: lasting },
    ])
    expect(sampleValue(all, 'spillway_x_total', { tenant: 'acme' })).toBe(11)
    expect(sampleValue(all, 'spillway_queue_depth', { pool: 'p' })).toBe(10)
  })

  it('has every family of the server, in a form that Prometheus reads', () => {
    const text = new Metrics({ version: '1', nodeVersion: '26' }).text()
    const both = mergeMetrics([
      { process: 1, text },
      { process: 2, text },
    ])
    expect([...parseExposition(both).keys()]).toEqual([...parseExposition(text).keys()])
  })

  it('takes what cannot be read as nothing', () => {
    expect(mergeMetrics([{ process: 1, text: 'x\n# TYPE a counter\nnonsense\na NaNny\n' }])).toBe(
      '\n# TYPE a counter\n',
    )
  })
})
