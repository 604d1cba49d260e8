/**
 * Which metrics library can be scraped without stalling streams?
 *
 * A scrape runs on the event loop: while it lasts, no token moves. Each library holds the same 800 series (200 tenants
 * by 4 models) once as a histogram of 12 buckets and once as a counter, and is asked for its text as the bytes that
 * go out (a text that is still a rope of pieces has not been paid for yet); beside it the cost of recording one sample
 * with 3 labels. Rounds are interleaved, so that noise hits all alike.
 *
 *   node bench/micro/metrics-scrape.ts [rounds]
 */
import { performance } from 'node:perf_hooks'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { AggregationType, MeterProvider } from '@opentelemetry/sdk-metrics'
import * as prom from 'prom-client'
import { Registry } from '../../src/telemetry/registry.ts'

const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const LABELS = ['tenant', 'model', 'outcome'] as const
const ROUNDS = Number(process.argv[2] ?? 15)
const RECORDS = 20_000

interface Contestant {
  observe(tenant: string, model: string, outcome: string, value: number): void
  count(tenant: string, model: string, outcome: string): void
  histogramText(): Promise<string> | string
  counterText(): Promise<string> | string
}

function ours(): Contestant {
  const histograms = new Registry()
  const counters = new Registry()
  const duration = histograms.histogram({
    name: 'a_seconds',
    help: 'x',
    labels: LABELS,
    bounds: BOUNDS.map((bound) => bound * 1e6),
    perUnit: 1e6,
  })
  const requests = counters.counter({ name: 'b_total', help: 'x', labels: LABELS })
  return {
    observe: (tenant, model, outcome, value) => duration.with(tenant, model, outcome).observe(value * 1e6),
    count: (tenant, model, outcome) => requests.with(tenant, model, outcome).inc(),
    histogramText: () => histograms.text(),
    counterText: () => counters.text(),
  }
}

function promClient(): Contestant {
  const histograms = new prom.Registry()
  const counters = new prom.Registry()
  const labelNames = [...LABELS]
  const duration = new prom.Histogram({
    name: 'a_seconds',
    help: 'x',
    labelNames,
    buckets: BOUNDS,
    registers: [histograms],
  })
  const requests = new prom.Counter({ name: 'b_total', help: 'x', labelNames, registers: [counters] })
  return {
    observe: (tenant, model, outcome, value) => duration.observe({ tenant, model, outcome }, value),
    count: (tenant, model, outcome) => requests.inc({ tenant, model, outcome }),
    histogramText: () => histograms.metrics(),
    counterText: () => counters.metrics(),
  }
}

function otelReader() {
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const provider = new MeterProvider({
    readers: [exporter],
    views: [
      {
        instrumentName: 'a_seconds',
        aggregation: {
          type: AggregationType.EXPLICIT_BUCKET_HISTOGRAM,
          options: { boundaries: BOUNDS, recordMinMax: false },
        },
        aggregationCardinalityLimit: 10_000,
      },
      { instrumentName: 'b', aggregationCardinalityLimit: 10_000 },
    ],
  })
  const serializer = new PrometheusSerializer('', false)
  return {
    meter: provider.getMeter('spillway'),
    text: async () => serializer.serialize((await exporter.collect()).resourceMetrics),
  }
}

function openTelemetry(): Contestant {
  const histograms = otelReader()
  const counters = otelReader()
  const duration = histograms.meter.createHistogram('a_seconds')
  const requests = counters.meter.createCounter('b')
  return {
    observe: (tenant, model, outcome, value) => duration.record(value, { tenant, model, outcome }),
    count: (tenant, model, outcome) => requests.add(1, { tenant, model, outcome }),
    histogramText: histograms.text,
    counterText: counters.text,
  }
}

const contestants: Array<[string, Contestant]> = [
  ['own registry', ours()],
  ['OpenTelemetry', openTelemetry()],
  ['prom-client', promClient()],
]
const tenants = Array.from({ length: 200 }, (_, i) => `tenant-${i}`)
const models = Array.from({ length: 4 }, (_, i) => `model-${i}`)

async function timeMs(work: () => unknown): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}

function summary(samples: number[]): string {
  const sorted = samples.toSorted((a, b) => a - b)
  const median = sorted[sorted.length >> 1] as number
  return `${median.toFixed(2)} (${sorted[0]?.toFixed(2)}–${sorted.at(-1)?.toFixed(2)})`.padStart(26)
}

for (const [, contestant] of contestants)
  for (const tenant of tenants)
    for (const model of models) {
      contestant.observe(tenant, model, 'completed', 0.1)
      contestant.count(tenant, model, 'completed')
    }

const results = new Map(
  contestants.map(([name]) => [
    name,
    { histogram: [], counter: [], observe: [], count: [] } as Record<string, number[]>,
  ]),
)
for (let round = 0; round < ROUNDS; round++)
  for (const [name, contestant] of contestants) {
    const result = results.get(name) as Record<string, number[]>
    result['histogram']?.push(await timeMs(async () => Buffer.from(await contestant.histogramText())))
    result['counter']?.push(await timeMs(async () => Buffer.from(await contestant.counterText())))
    const pick = (i: number) => [tenants[i % 200] as string, models[i % 4] as string, 'completed'] as const
    const observing = await timeMs(() => {
      for (let i = 0; i < RECORDS; i++) contestant.observe(...pick(i), 0.123)
    })
    result['observe']?.push((observing / RECORDS) * 1e6)
    const counting = await timeMs(() => {
      for (let i = 0; i < RECORDS; i++) contestant.count(...pick(i))
    })
    result['count']?.push((counting / RECORDS) * 1e6)
  }

console.log(`${ROUNDS} rounds, median (min–max); the first scrape is cold and counts`)
console.log(
  `${''.padEnd(14)}${['800 histograms ms', '800 counters ms', 'observe ns', 'count ns'].map((h) => h.padStart(26)).join('')}  histogram text`,
)
for (const [name, contestant] of contestants) {
  const result = results.get(name) as Record<string, number[]>
  const text = await contestant.histogramText()
  console.log(
    `${name.padEnd(14)}${Object.values(result).map(summary).join('')}  ${(text.length / 1_000).toFixed(0)} kB`,
  )
}
