import type { Cancellation } from '../base/cancellation.ts'

/**
 * One statement at a time, the same SQL everywhere: embedded PGlite in a thread, or a PostgreSQL server.
 *
 * Parameters are text, numbers, booleans or null; lists and objects travel as JSON or array text and are cast in the
 * statement, because the two drivers would write them differently. Bytes are a type's own binary form. Whole numbers come back as numbers when the
 * statement casts them to int or float8. Every statement ends within its time limit or rejects.
 */
export type Row = Readonly<Record<string, unknown>>

export type Parameter = string | number | boolean | null | Uint8Array

export interface QueryOptions {
  /** Called off in the database, not only here: what runs is stopped, what waits is never started. */
  readonly cancellation?: Cancellation | undefined
  /** Something that a client waits for goes before something that only must be done. */
  readonly isUrgent?: boolean
}

export interface RunOptions {
  /** A limit of its own, in place of that of ordinary statements. */
  readonly msMax?: number
}

export interface Database {
  query(sql: string, parameters: readonly Parameter[], options?: QueryOptions): Promise<readonly Row[]>
  /** Several statements without parameters, as migrations are: those may take longer than anything else. */
  run(script: string, options?: RunOptions): Promise<void>
  close(): Promise<void>
}

/** The database is not there, or does not answer: somebody else's fault, and worth trying later. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
}

/** The query was called off by its own cancellation. */
export class QueryCancelled extends Error {
  override readonly name = 'QueryCancelled'
}
