import { type ExpositionFamily, histogramsIn } from '../base/read-exposition.ts'
import type { SpanValue, TicketSpan } from './make-spans.ts'
import { SPAN_SCHEMA_URL } from './span-names.ts'

/**
 * OTLP 1.x in JSON: whole numbers of 64 bits are text, ids are hexadecimal, enumerations are numbers
 * (opentelemetry-proto, `docs/specification.md`). Written by hand: the SDK took 10 µs of CPU a span and 30 MB of packages.
 */
export interface OtlpResource {
  readonly version: string
  /** Tells the gateways of a cell apart. */
  readonly instanceId: string
}

const SPAN_KIND = { internal: 1, server: 2, client: 3 } as const
const STATUS_ERROR = { code: 2 }
const CUMULATIVE = 2

type OtlpValue = { stringValue: string } | { intValue: string } | { doubleValue: number } | { boolValue: boolean }
interface OtlpAttribute {
  readonly key: string
  readonly value: OtlpValue
}

function otlpValue(value: string | number | boolean): OtlpValue {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

function attributesOf(values: Readonly<Record<string, SpanValue>>): OtlpAttribute[] {
  const attributes: OtlpAttribute[] = []
  for (const key in values) {
    const value = values[key]
    if (value !== undefined && value !== '') attributes.push({ key, value: otlpValue(value) })
  }
  return attributes
}

const resourceOf = ({ version, instanceId }: OtlpResource): object => ({
  attributes: attributesOf({
    'service.name': 'spillway',
    'service.version': version,
    'service.instance.id': instanceId,
  }),
})

const nanos = (us: number): string => `${Math.round(us)}000`

export function otlpTraces(spans: readonly TicketSpan[], resource: OtlpResource): string {
  const encoded = spans.map((span) => ({
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentId !== undefined && { parentSpanId: span.parentId }),
    name: span.name,
    kind: SPAN_KIND[span.kind],
    startTimeUnixNano: nanos(span.startAt),
    endTimeUnixNano: nanos(span.endAt),
    attributes: attributesOf(span.attributes),
    ...(span.error !== undefined && { status: { ...STATUS_ERROR, message: span.error } }),
  }))
  return JSON.stringify({
    resourceSpans: [
      {
        resource: resourceOf(resource),
        scopeSpans: [{ scope: { name: 'spillway', version: resource.version }, spans: encoded }],
        schemaUrl: SPAN_SCHEMA_URL,
      },
    ],
  })
}

/** Instants of the start and of now, in microseconds since 1970. */
export interface OtlpTimes {
  readonly startedAt: number
  readonly now: number
}

export function otlpMetrics(families: readonly ExpositionFamily[], resource: OtlpResource, times: OtlpTimes): string {
  const metrics = families.filter(({ samples }) => samples.length > 0).map((family) => metricOf(family, times))
  return JSON.stringify({
    resourceMetrics: [
      {
        resource: resourceOf(resource),
        scopeMetrics: [{ scope: { name: 'spillway', version: resource.version }, metrics }],
      },
    ],
  })
}

function metricOf(family: ExpositionFamily, { startedAt, now }: OtlpTimes): object {
  const { name, help, kind } = family
  const at = { startTimeUnixNano: nanos(startedAt), timeUnixNano: nanos(now) }
  const head = { name, description: help, unit: unitIn(name) }
  if (kind === 'histogram') {
    const dataPoints = histogramsIn(family).map(({ labels, bounds, counts, sum, count }) => ({
      ...at,
      attributes: attributesOf(labels),
      count: String(count),
      sum,
      bucketCounts: counts.map(String),
      explicitBounds: bounds,
    }))
    return { ...head, histogram: { aggregationTemporality: CUMULATIVE, dataPoints } }
  }
  const dataPoints = family.samples
    .filter(({ value }) => Number.isFinite(value))
    .map(({ labels, value }) => ({ ...at, attributes: attributesOf(labels), asDouble: value }))
  if (kind === 'gauge') return { ...head, gauge: { dataPoints } }
  return { ...head, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } }
}

function unitIn(name: string): string {
  if (/_seconds(_|$)/.test(name)) return 's'
  return /_bytes(_|$)/.test(name) ? 'By' : '1'
}
