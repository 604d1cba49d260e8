import type { Arrived, Entry, Granted, Settled } from '../domain/entry.ts'
import type { Exemplar } from './cells.ts'
import type { Registry } from './registry.ts'

/**
 * What a file that declares metrics may use: the registry, entries, and the arrivals of live tickets, for entries that
 * name a ticket but not its model.
 *
 * A metric is two statements and a row in docs/operations/metrics.md (a test compares the two):
 *
 *     const attempts = registry.counter({ name: 'spillway_attempts_total', help: '…', labels: ['replica', 'ending'] })
 *     on('attempt-ended', (entry) => attempts.with(entry.replicaId, entry.ending).inc())
 */
export interface MetricFeed {
  readonly registry: Registry
  readonly on: <K extends Entry['kind']>(kind: K, feed: (entry: EntryOf<K>) => void) => void
  /** Undefined when the ticket has settled, or when the journal dropped its arrival. */
  readonly ticketOf: (ticketId: string) => Arrived | undefined
  /** The exemplar of a ticket whose spans will be or are made; undefined for all others. Ask while the ticket is live. */
  readonly exemplarOf: (ending: Granted | Settled) => Exemplar | undefined
}

export type EntryOf<K extends Entry['kind']> = Extract<Entry, { kind: K }>
