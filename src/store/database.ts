import type { Cancellation } from '../base/cancellation.ts'
import type { LaneWait } from '../lifecycle/retrieval-ports.ts'

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
  /**
   * Cancels the statement in the database, not only here: a running statement is stopped, a waiting one is never
   * started.
   */
  readonly cancellation?: Cancellation | undefined
  /** A statement that a request waits for goes before others. */
  readonly isUrgent?: boolean
  /** The lane in which the statement waits: a tenant's, or the platform's own if absent. Lanes take turns. */
  readonly lane?: string | undefined
  readonly wait?: LaneWait | undefined
}

/** The lane of a tenant's statements. No name of a tenant begins with a slash, as the platform's own lanes do. */
export const tenantLane = (tenantId: string): string => tenantId

/** The lane of statements without a tenant: migrations, the registry. */
export const PLATFORM_LANE = '/platform'

/** The lane of the indexer, which works for all tenants in turn: one tenant's queue must not hold it up. */
export const INDEXER_LANE = '/indexer'

export interface RunOptions {
  /** Time limit of this statement, instead of the usual one. */
  readonly msMax?: number
}

/** The channel on which gateways tell each other that there is something to read. The triggers of the schema name it. */
export const NOTICE_CHANNEL = 'spillway'

/** What there is to read: the payload of a notice. After a break anything may have been missed. */
export type Notice = 'registry' | 'tenancy' | 'leader' | 'question' | 'answer' | 'anything'

export interface Database {
  query(sql: string, parameters: readonly Parameter[], options?: QueryOptions): Promise<readonly Row[]>
  /** Several statements without parameters, for migrations, which may take longer than anything else. */
  run(script: string, options?: RunOptions): Promise<void>
  close(): Promise<void>
}

/**
 * The database is down or does not answer: worth trying later. Clients see the message, which therefore names no file,
 * address or user; `detail` does, for operators.
 */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly detail: string | undefined

  constructor(message: string, detail?: string) {
    super(message)
    this.detail = detail
  }
}

/** The query was cancelled by its own cancellation. */
export class QueryCancelled extends Error {
  override readonly name = 'QueryCancelled'
}
