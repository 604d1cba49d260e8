import { LiveJournal } from './journal.ts'
import { makeLiveLog } from './live-log.ts'
import { makeProcessSampler } from './live-process.ts'
import { type LogDestination, LogLines, type LogOptions } from './log.ts'
import { Metrics } from './metrics.ts'
import { RecentTickets } from './recent.ts'

/** What the live server watches itself with: one journal and those who listen. */
export interface LiveTelemetry {
  readonly journal: LiveJournal
  readonly metrics: Metrics
  readonly recent: RecentTickets
  /** Delivers and writes what is still waiting. For the end of the process. */
  close(): Promise<void>
}

export interface LiveTelemetryOptions {
  readonly version: string
  readonly format?: NonNullable<LogOptions['format']>
  readonly level?: NonNullable<LogOptions['level']>
  /** Standard output unless given. */
  readonly log?: LogDestination & { close?(): Promise<void> }
}

export function makeLiveTelemetry(options: LiveTelemetryOptions): LiveTelemetry {
  // After the input that is pending has been served, and before the loop sleeps.
  const journal = new LiveJournal({ schedule: (drain) => setImmediate(drain) })
  const metrics = new Metrics({
    version: options.version,
    nodeVersion: process.version,
    journal,
    sampleProcess: makeProcessSampler(),
  })
  const recent = new RecentTickets()
  const log = options.log ?? makeLiveLog()
  journal.subscribe(metrics)
  journal.subscribe(recent)
  journal.subscribe(
    new LogLines({ destination: log, format: options.format ?? 'json', level: options.level ?? 'info' }),
  )
  return {
    journal,
    metrics,
    recent,
    close: async () => {
      journal.drain()
      await log.close?.()
    },
  }
}
