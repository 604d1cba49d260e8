import { hostname } from 'node:os'
import packageJson from '../../package.json' with { type: 'json' }
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { type LiveTelemetry, makeLiveTelemetry } from '../telemetry/live-telemetry.ts'
import { SpanSampler } from '../telemetry/span-sampler.ts'
import { startOtlp } from './live-otlp.ts'
import { logFormat, logLevel } from './log-options.ts'
import type { Seat } from './seat.ts'

interface TelemetryWorld {
  readonly clock: Clock
  readonly complain: (problem: string) => void
}

/** The journal and its subscribers, and a collector of others where one is named. */
export function openTelemetry(
  config: Config,
  seat: Seat | undefined,
  { clock, complain }: TelemetryWorld,
): LiveTelemetry {
  const { logging, telemetry: terms } = config
  const { version } = packageJson
  const spans = terms.otlpUrl === undefined ? undefined : new SpanSampler({ ratio: terms.sampleRatio })
  const telemetry = makeLiveTelemetry({
    version,
    level: logLevel(logging.level),
    format: logFormat(logging.format),
    process: seat?.number,
    spans,
  })
  if (spans === undefined) return telemetry
  const instanceId = `${hostname()}:${config.server.port}${seat === undefined ? '' : `/${seat.number}`}`
  const metricsText = (): string => telemetry.metricsText()
  const otlp = startOtlp(config, { clock, spans, metricsText, resource: { version, instanceId }, complain })
  return {
    ...telemetry,
    close: async () => {
      telemetry.journal.drain()
      await otlp.close()
      await telemetry.close()
    },
  }
}
