/** The figures that are reported, each computed from one sample (and direct's sample of the same round). */
import type { Quantiles, Sample } from './measure.ts'

export interface Metric {
  readonly id: string
  readonly label: string
  readonly unit: string
  readonly slice: string
  readonly better: 'more' | 'less'
  /** Undefined where the figure has no meaning for this target, or nothing was answered. */
  value(sample: Sample, direct: Sample | undefined): number | undefined
}

type Which = (sample: Sample) => Quantiles
const latency: Which = (sample) => sample.client.latencyUs
const firstFrame: Which = (sample) => sample.client.firstFrameUs
const lag: Which = (sample) => sample.client.lagUs

/** Milliseconds beyond direct; for direct itself, its own milliseconds. */
function added(pick: Which, quantile: 'p50' | 'p99'): Metric['value'] {
  return (sample, direct) => {
    const own = pick(sample)
    if (own.count === 0) return undefined
    if (sample.target === 'direct') return own[quantile] / 1000
    if (direct === undefined || pick(direct).count === 0) return undefined
    return (own[quantile] - pick(direct)[quantile]) / 1000
  }
}

/** Good answers only: refusing is cheap. */
const perCpuSecond: Metric['value'] = (sample) =>
  sample.proxy && sample.proxy.cpuSeconds > 0 ? sample.client.ok / sample.proxy.cpuSeconds : undefined

const cpuUsPerFrame: Metric['value'] = (sample) =>
  sample.proxy && sample.client.frames > 0 ? (sample.proxy.cpuSeconds * 1e6) / sample.client.frames : undefined

const memory =
  (which: 'processMb' | 'treeMb'): Metric['value'] =>
  (sample) =>
    sample.proxy?.memoryMax[which]

const pair = (slice: string, what: string, pick: Which): Metric[] =>
  (['p50', 'p99'] as const).map((quantile) => ({
    id: `${slice}.added-${quantile}`,
    label: `added ${quantile}, ${what}`,
    unit: 'ms',
    slice,
    better: 'less',
    value: added(pick, quantile),
  }))

export const METRICS: readonly Metric[] = [
  {
    id: 'json-c64.requests-per-cpu-second',
    label: 'requests per CPU-second, 64 conn.',
    unit: '/s',
    slice: 'json-c64',
    better: 'more',
    value: perCpuSecond,
  },
  {
    id: 'json-c64.requests-per-second',
    label: 'requests per second, 64 conn.',
    unit: '/s',
    slice: 'json-c64',
    better: 'more',
    value: (sample) => sample.client.ok / sample.client.seconds,
  },
  {
    id: 'json-1kb.requests-per-cpu-second',
    label: 'requests per CPU-second, 1 kB prompts',
    unit: '/s',
    slice: 'json-1kb',
    better: 'more',
    value: perCpuSecond,
  },
  ...pair('json-c1', '1 connection', latency),
  ...pair('json-c64', '64 connections', latency),
  ...pair('json-r500', '500 req/s open loop', latency),
  ...pair('sse-first', 'first token', firstFrame),
  {
    id: 'sse-paced.cpu-us-per-chunk',
    label: 'CPU per chunk, 10k chunks/s',
    unit: 'µs',
    slice: 'sse-paced',
    better: 'less',
    value: cpuUsPerFrame,
  },
  ...pair('sse-paced', 'chunk lag, 10k chunks/s', lag),
  {
    id: 'sse-flood.cpu-us-per-chunk',
    label: 'CPU per chunk, 50k chunks/s offered',
    unit: 'µs',
    slice: 'sse-flood',
    better: 'less',
    value: cpuUsPerFrame,
  },
  {
    id: 'sse-flood.chunks-per-second',
    label: 'chunks relayed, 50k/s offered',
    unit: '/s',
    slice: 'sse-flood',
    better: 'more',
    value: (sample) => sample.client.frames / sample.client.seconds,
  },
  {
    id: 'sse-held.streams',
    label: 'streams held open',
    unit: '',
    slice: 'sse-held',
    better: 'more',
    value: (sample) => sample.client.heldMax,
  },
  {
    id: 'sse-held.lost',
    label: 'frames lost or disordered',
    unit: '',
    slice: 'sse-held',
    better: 'less',
    value: (sample) => sample.client.lost + sample.client.disordered,
  },
  {
    id: 'sse-held.rss-mb',
    label: 'RSS of the process, streams open',
    unit: 'MB',
    slice: 'sse-held',
    better: 'less',
    value: memory('processMb'),
  },
  {
    id: 'sse-held.cpu-us-per-chunk',
    label: 'CPU per chunk, streams open',
    unit: 'µs',
    slice: 'sse-held',
    better: 'less',
    value: cpuUsPerFrame,
  },
  ...pair('sse-held', 'chunk lag, streams open', lag),
  {
    id: 'json-c64.rss-mb',
    label: 'RSS of all processes, 64 conn.',
    unit: 'MB',
    slice: 'json-c64',
    better: 'less',
    value: memory('treeMb'),
  },
]
