import fc from 'fast-check'
import * as prom from 'prom-client'
import { describe, expect, it } from 'vitest'
import { parseExposition, type Sample, sampleValue } from '../../test/support/parse-exposition.ts'
import { Registry } from './registry.ts'

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('', '\\', '"', '\n', '\\n', 'a"b\\', '{}', ',', '\\\\"\n'),
)

describe('Registry', () => {
  it('writes what Prometheus reads', () => {
    const registry = new Registry()
    registry
      .counter({ name: 'a_total', help: 'Counts.', labels: ['x'] })
      .with('1')
      .inc(2)
    registry.gauge({ name: 'b', help: 'Goes\nup and down.' }).with().set(-0.5)
    const histogram = registry.histogram({
      name: 'c_seconds',
      help: 'How long.',
      bounds: [1_000, 2_000],
      perUnit: 1_000,
    })
    for (const ms of [500, 1_000, 1_500, 9_000]) histogram.with().observe(ms)
    expect(registry.text()).toBe(`# HELP a_total Counts.
# TYPE a_total counter
a_total{x="1"} 2
# HELP b Goes\\nup and down.
# TYPE b gauge
b -0.5
# HELP c_seconds How long.
# TYPE c_seconds histogram
c_seconds_bucket{le="1"} 2
c_seconds_bucket{le="2"} 3
c_seconds_bucket{le="+Inf"} 4
c_seconds_sum 12
c_seconds_count 4
`)
  })

  it('brings any label value and help text through unharmed', () =>
    fc.assert(
      fc.property(text, text, text, (a, b, help) => {
        const registry = new Registry()
        registry
          .gauge({ name: 'a', help, labels: ['x', 'y'] })
          .with(a, b)
          .set(1)
        const family = parseExposition(registry.text()).get('a')
        expect(family?.help).toBe(help)
        expect(family?.samples).toEqual([{ name: 'a', labels: { x: a, y: b }, value: 1 }])
      }),
    ))

  it('makes one series of two values that are one text on the wire', () => {
    const registry = new Registry()
    const counter = registry.counter({ name: 'a_total', help: 'x', labels: ['x'] })
    counter.with('\ud800').inc()
    counter.with('\udfff').inc()
    expect(parseExposition(registry.text()).get('a_total')?.samples).toEqual([
      { name: 'a_total', labels: { x: '\ufffd' }, value: 2 },
    ])
  })

  it('has exact sums and counts, whatever the samples, one by one or merged', () =>
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5_000_000 })), (samples) => {
        const bounds = [1_000, 20_000, 300_000, 4_000_000]
        const registry = new Registry()
        const options = { help: 'x', bounds, perUnit: 1_000_000 }
        const single = registry.histogram({ ...options, name: 'single_seconds' }).with()
        const merged = registry.histogram({ ...options, name: 'merged_seconds' }).with()
        const counts = new Uint32Array(bounds.length + 1)
        for (const us of samples) {
          single.observe(us)
          const bucket = bounds.findIndex((bound) => us <= bound)
          const index = bucket < 0 ? bounds.length : bucket
          counts[index] = (counts[index] ?? 0) + 1
        }
        const sumUs = samples.reduce((sum, us) => sum + us, 0)
        merged.merge(counts, sumUs)
        const written = registry.text()
        const linesOf = (name: string) => written.split('\n').filter((line) => line.startsWith(name))
        expect(linesOf('merged').map((line) => line.replace('merged', 'single'))).toEqual(linesOf('single'))
        expect(sampleValue(written, 'single_seconds_sum')).toBe(sumUs / 1_000_000)
        expect(sampleValue(written, 'single_seconds_count')).toBe(samples.length)
        for (const bound of bounds) {
          const expected = samples.filter((us) => us <= bound).length
          expect(sampleValue(written, 'single_seconds_bucket', { le: String(bound / 1_000_000) })).toBe(expected)
        }
      }),
      { numRuns: 40 },
    ))

  it('ignores what is no number, and counts a negative time as none', () => {
    const registry = new Registry()
    const counter = registry.counter({ name: 'a_total', help: 'x' }).with()
    for (const bad of [Number.NaN, -1, Number.POSITIVE_INFINITY]) counter.inc(bad)
    const gauge = registry.gauge({ name: 'b', help: 'x' }).with()
    gauge.set(3)
    gauge.set(Number.NaN)
    const histogram = registry.histogram({ name: 'c_seconds', help: 'x', bounds: [1] }).with()
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, -5]) histogram.observe(bad)
    histogram.merge([1, 1, 1], 3)
    histogram.merge([1, 1], Number.NaN)
    const value = (name: string) => sampleValue(registry.text(), name)
    expect([value('a_total'), value('b'), value('c_seconds_sum'), value('c_seconds_count')]).toEqual([0, 3, 0, 1])
  })

  it('never lets a count that somebody else keeps go back', () => {
    const registry = new Registry()
    const counter = registry.counter({ name: 'a_total', help: 'x' }).with()
    for (const value of [5, 3, Number.NaN]) counter.raiseTo(value)
    expect(sampleValue(registry.text(), 'a_total')).toBe(5)
  })

  it('bounds the series of a family, and loses no count', () => {
    const registry = new Registry()
    const counter = registry.counter({ name: 'a_total', help: 'x', labels: ['x', 'y'], seriesMax: 10 })
    for (let i = 0; i < 1_000; i++) counter.with(`${i % 100}`, `${i % 7}`).inc()
    const samples = parseExposition(registry.text()).get('a_total')?.samples ?? []
    expect(samples.length).toBe(11)
    expect(samples.reduce((sum, sample) => sum + sample.value, 0)).toBe(1_000)
    expect(samples.find((sample) => sample.labels['x'] === 'other')?.labels).toEqual({ x: 'other', y: 'other' })
  })

  it('forgets the series of one first label, and gives their room back', () => {
    const registry = new Registry()
    const counter = registry.counter({ name: 'a_total', help: 'x', labels: ['x', 'y'], seriesMax: 3 })
    for (const [x, y] of [
      ['a', '1'],
      ['a', '2'],
      ['b', '1'],
    ] as const)
      counter.with(x, y).inc()
    counter.forget('a')
    counter.forget('never seen')
    counter.with('c', '1').inc()
    const samples = parseExposition(registry.text()).get('a_total')?.samples ?? []
    expect(samples.map((sample) => sample.labels['x'])).toEqual(['b', 'c'])
    expect(counter.seriesCount).toBe(2)
  })

  it('refuses names that are wrong or taken', () => {
    const registry = new Registry()
    registry.gauge({ name: 'a', help: 'x' })
    expect(() => registry.gauge({ name: 'a', help: 'x' })).toThrow('registered once')
    expect(() => registry.counter({ name: 'b', help: 'x' })).toThrow('_total')
    expect(() => registry.gauge({ name: 'B-b', help: 'x' })).toThrow('lower case')
    expect(() => registry.gauge({ name: 'c', help: 'x', labels: ['le'] })).toThrow('label le')
    expect(() => registry.histogram({ name: 'd', help: 'x', bounds: [2, 1] })).toThrow('ascend')
  })

  it('goes on when a sampler fails', () => {
    const registry = new Registry()
    const gauge = registry.gauge({ name: 'a', help: 'x' })
    registry.beforeScrape(() => {
      throw new Error('no')
    })
    registry.beforeScrape(() => gauge.with().set(7))
    expect(sampleValue(registry.text(), 'a')).toBe(7)
  })
})

/** Order does not matter; label sets do. */
function comparable(samples: readonly Sample[] = []): string[] {
  const labelsOf = (sample: Sample) => Object.entries(sample.labels).map(([name, value]) => `${name}=${value}`)
  const lines = samples.map(
    (sample) =>
      `${sample.name} ${labelsOf(sample)
        .toSorted((a, b) => a.localeCompare(b))
        .join()} ${sample.value}`,
  )
  return lines.toSorted((a, b) => a.localeCompare(b))
}

describe('against prom-client as oracle', () => {
  const operation = fc.record({
    x: fc.constantFrom('a', 'b"', 'c\n'),
    y: fc.constantFrom('', '\\', 'é'),
    value: fc.integer({ min: 0, max: 64 }),
  })

  it('says the same about the same samples', () =>
    fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 60 }), async (operations) => {
        const labels = ['x', 'y'] as const
        const ours = new Registry()
        const counter = ours.counter({ name: 'a_total', help: 'h', labels })
        const gauge = ours.gauge({ name: 'b', help: 'h', labels })
        const histogram = ours.histogram({ name: 'c_seconds', help: 'h', labels, bounds: [1, 8, 40] })
        const registers = [new prom.Registry()]
        const labelNames = [...labels]
        const oracleCounter = new prom.Counter({ name: 'a_total', help: 'h', labelNames, registers })
        const oracleGauge = new prom.Gauge({ name: 'b', help: 'h', labelNames, registers })
        const oracleHistogram = new prom.Histogram({
          name: 'c_seconds',
          help: 'h',
          labelNames,
          buckets: [1, 8, 40],
          registers,
        })
        for (const { x, y, value } of operations) {
          counter.with(x, y).inc(value)
          gauge.with(x, y).set(value)
          histogram.with(x, y).observe(value)
          oracleCounter.inc({ x, y }, value)
          oracleGauge.set({ x, y }, value)
          oracleHistogram.observe({ x, y }, value)
        }
        const mine = parseExposition(ours.text())
        const oracle = parseOracle(await (registers[0] as prom.Registry).metrics())
        for (const name of ['a_total', 'b', 'c_seconds']) {
          expect(comparable(mine.get(name)?.samples)).toEqual(comparable(oracle.get(name)?.samples))
          expect(mine.get(name)?.kind).toBe(oracle.get(name)?.kind)
        }
      }),
      { numRuns: 50 },
    ))
})

/** It separates families with an empty line, which ours does not. */
function parseOracle(written: string) {
  return parseExposition(written.replaceAll('\n\n', '\n'))
}
