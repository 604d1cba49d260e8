import { LiveJournal, type LiveJournalOptions } from './journal.ts'
import { makeLiveLog } from './live-log.ts'
import { makeProcessSampler } from './live-process.ts'
import { makeRenaming } from './live-renaming.ts'
import { type LogDestination, LogLines, type LogOptions } from './log.ts'
import { Metrics } from './metrics.ts'
import { RecentTickets } from './recent.ts'
import { RecentRefusals, type RefusalsAsk } from './recent-refusals.ts'
import { Recorder, type RecordingOut } from './recorder.ts'
import type { SpanSampler } from './span-sampler.ts'

/** Telemetry of the live server: one journal and its subscribers. */
export interface LiveTelemetry {
  readonly journal: LiveJournal
  /** The body of `/metrics`, with all events until now; with exemplars it is for `toOpenMetrics`. */
  metricsText(hasExemplars?: boolean): string
  /** The remembered entries of a ticket, until now. */
  storyOf(ticketId: string): ReturnType<RecentTickets['storyOf']>
  /** The last refusals until now, the newest first. */
  refusals(ask: RefusalsAsk): ReturnType<RecentRefusals['list']>
  /** Records requests that arrive from `startAt` on, until the returned function is called; undefined: too many do. */
  record(out: RecordingOut, startAt: number): (() => void) | undefined
  /** Ends every recording, after the last answer. */
  endRecordings(): void
  /** Delivers and writes what is still waiting, at the end of the process. */
  close(): Promise<void>
}

export interface LiveTelemetryOptions {
  readonly version: string
  readonly format?: NonNullable<LogOptions['format']>
  readonly level?: NonNullable<LogOptions['level']>
  readonly process?: LogOptions['process']
  /** Makes spans of tickets that ended; absent: nobody wants any. */
  readonly spans?: SpanSampler | undefined
  /** Standard output unless given. */
  readonly log?: LogDestination & { close?(): Promise<void> }
}

/**
 * Time that entries are gathered before they are delivered. At 5,000 requests a second, a delivery on every turn of the
 * event loop cost a tenth of the process (mostly one write of the log each); fifty requests together cost a fiftieth.
 */
const PAUSE_MS = 10

/** One delivery is pending at a time: the one scheduled last. */
function makeSchedule(): NonNullable<LiveJournalOptions['schedule']> {
  let timer: NodeJS.Timeout | undefined
  return (drain, when) => {
    clearTimeout(timer)
    if (when === 'soon') timer = setTimeout(drain, PAUSE_MS)
    else setImmediate(drain)
  }
}

export function makeLiveTelemetry(options: LiveTelemetryOptions): LiveTelemetry {
  const journal = new LiveJournal({ schedule: makeSchedule() })
  const metrics = new Metrics({
    version: options.version,
    nodeVersion: process.version,
    journal,
    sampleProcess: makeProcessSampler(),
    spans: options.spans,
  })
  const { spans } = options
  const recent = new RecentTickets({ onSettled: spans && ((story, settled) => spans.take(story, settled)) })
  const refusals = new RecentRefusals()
  const recorder = new Recorder({
    renaming: makeRenaming(),
    missedEntries: () => journal.view().find(({ name }) => name === recorder.name)?.dropped ?? 0,
  })
  const log = options.log ?? makeLiveLog()
  journal.subscribe(metrics)
  journal.subscribe(recent)
  journal.subscribe(refusals)
  journal.subscribe(recorder)
  journal.subscribe(
    new LogLines({
      destination: log,
      format: options.format ?? 'json',
      level: options.level ?? 'info',
      process: options.process,
    }),
  )
  return {
    journal,
    metricsText: (hasExemplars) => {
      journal.drain()
      return metrics.text(hasExemplars)
    },
    storyOf: (ticketId) => {
      journal.drain()
      return recent.storyOf(ticketId)
    },
    refusals: (ask) => {
      journal.drain()
      return refusals.list(ask)
    },
    record: (out, startAt) => recorder.begin(out, startAt),
    endRecordings: () => {
      journal.drain()
      recorder.endAll()
    },
    close: async () => {
      journal.drain()
      await log.close?.()
    },
  }
}
