import { Type } from '../base/schema.ts'
import * as defaults from './defaults.ts'
import { durationMs, section } from './schema-fields.ts'

export const TelemetrySchema = section(
  {
    otlpUrl: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s/]+(/.*)?$',
        env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
        description:
          'Address of an OpenTelemetry collector (OTLP over HTTP, JSON), such as `http://collector:4318`; `/v1/traces` and `/v1/metrics` are added. Nothing is sent if absent. A collector that is away changes no answer.',
      }),
    ),
    headers: Type.Record(Type.String(), Type.String(), {
      default: {},
      description: 'Further headers for the collector, such as a key.',
    }),
    sampleRatio: Type.Number({
      default: defaults.TRACE_SAMPLE_RATIO,
      minimum: 0,
      maximum: 1,
      description:
        'Share of the requests that went well whose spans are sent. Those whose caller’s `traceparent` is sampled, that failed, were refused or broke their promise always are.',
    }),
    metricsEveryMs: durationMs(defaults.OTLP_METRICS_EVERY_MS, {
      description: 'Time between two reports of all metrics to the collector, in milliseconds; 0: none.',
    }),
  },
  'OpenTelemetry: traces and metrics for a collector. Nothing in them is prompt text.',
)
