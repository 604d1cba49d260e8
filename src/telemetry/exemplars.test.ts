import { describe, expect, it } from 'vitest'
import { arrived, refused, settled, story } from '../../test/support/entries.ts'
import { toOpenMetrics } from '../base/open-metrics.ts'
import { traceIdOf } from '../base/trace-context.ts'
import type { Entry } from '../domain/entry.ts'
import { Metrics } from './metrics.ts'
import { Registry } from './registry.ts'
import { SpanSampler } from './span-sampler.ts'

const trace = { traceId: 'a'.repeat(32), parentId: 'b'.repeat(16), isSampled: true }

/** An ordinary request whose caller names a trace. */
const traced = (isSampled = true): Entry[] => [arrived({ trace: { ...trace, isSampled } }), ...story().slice(1)]

function linesOf(entries: readonly Entry[], spans?: SpanSampler): string[] {
  const metrics = new Metrics({ version: '0', nodeVersion: '0', spans })
  for (const entry of entries) metrics.take(entry)
  // The older text has no place for them.
  expect(metrics.text()).not.toContain('trace_id')
  return toOpenMetrics(metrics.text(true))
    .split('\n')
    .filter((line) => line.includes('trace_id'))
}

describe('exemplars', () => {
  it('are on the bucket of each latency of a ticket that its caller samples', () => {
    const lines = linesOf(traced())
    expect(lines.map((line) => /spillway_(\w+)_seconds_bucket.*(le="[^"]*")/.exec(line)?.slice(1).join(' '))).toEqual([
      'request_duration le="1"',
      'time_to_first_token le="0.5"',
      'prefill le="0.3"',
      'decode le="0.25"',
      'queue_wait le="0.25"',
    ])
    expect(lines[1]).toMatch(/le="0.5"\} 1 # \{trace_id="a{32}"\} 0.5 2$/)
  })

  it.each([
    ['nobody asked for', story(), undefined, 0],
    ['the caller does not sample', traced(false), undefined, 0],
    ['was refused, with nobody who collects', [arrived(), refused()], undefined, 0],
    ['was refused, for a collector', [arrived(), refused()], 0, 1],
    ['went well, for a collector of none', story(), 0, 0],
    ['went well, for a collector of all', story(), 1, 4],
    ['broke its promise, for a collector', story(settled({ isKept: false })), 0, 4],
    ['the caller does not sample, for a collector of all', traced(false), 1, 0],
  ])('of a ticket that %s', (_what, entries, ratio, count) => {
    const spans = ratio === undefined ? undefined : new SpanSampler({ ratio })
    const lines = linesOf(entries, spans)
    expect(lines).toHaveLength(count)
    if (lines[0] !== undefined) expect(lines[0]).toContain(`trace_id="${traceIdOf('req_1')}"`)
    // They name traces that there are: the sampler makes spans of the same tickets.
    spans?.take(entries, entries.at(-1) as ReturnType<typeof settled>)
    if (spans !== undefined) expect(spans.view().made > 0).toBe(count > 0)
  })

  it('are one for each bucket, the newest, and stay in their bucket', () => {
    const registry = new Registry()
    const cell = registry.histogram({ name: 'a_seconds', help: 'x', bounds: [10, 20], perUnit: 10 }).with()
    cell.observe(5, { traceId: 'old', at: 1_000_000 })
    cell.observe(6, { traceId: 'new', at: 2_500_000 })
    cell.observe(99, { traceId: 'far', at: 3_000_000 })
    cell.observe(7)
    const buckets = registry.text(true).split('\n').slice(2, 5)
    expect(buckets).toEqual([
      'a_seconds_bucket{le="1"} 3 # {trace_id="new"} 0.6 2.5',
      'a_seconds_bucket{le="2"} 3',
      'a_seconds_bucket{le="+Inf"} 4 # {trace_id="far"} 9.9 3',
    ])
  })
})
