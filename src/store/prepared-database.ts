import { detailOf } from '../base/detail-of.ts'
import {
  type Database,
  DatabaseUnavailable,
  type Parameter,
  type QueryOptions,
  type Row,
  type RunOptions,
} from './database.ts'

/**
 * A database that is migrated before its first statement; if that fails, the next statement tries again. A database
 * that loses its tables while the process runs (restored from nothing, dropped, an embedded folder that was deleted) is
 * migrated again, and the statement is repeated once: a statement that misses a table has changed nothing.
 */
export class PreparedDatabase implements Database {
  readonly #inner: Database
  readonly #prepare: (database: Database) => Promise<unknown>
  #ready: Promise<unknown> | undefined

  constructor(inner: Database, prepare: (database: Database) => Promise<unknown>) {
    this.#inner = inner
    this.#prepare = prepare
  }

  /** Resolves when the database is migrated; rejects with the reason otherwise. */
  ready(): Promise<unknown> {
    this.#ready ??= this.#prepare(this.#inner).catch((error: unknown) => {
      this.#ready = undefined
      if (error instanceof DatabaseUnavailable) throw error
      throw new DatabaseUnavailable('The tables of the database could not be made.', detailOf(error))
    })
    return this.#ready
  }

  query(sql: string, parameters: readonly Parameter[], options?: QueryOptions): Promise<readonly Row[]> {
    return this.#prepared(() => this.#inner.query(sql, parameters, options))
  }

  run(script: string, options?: RunOptions): Promise<void> {
    return this.#prepared(() => this.#inner.run(script, options))
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  async #prepared<T>(ask: () => Promise<T>): Promise<T> {
    const ready = this.ready()
    await ready
    try {
      return await ask()
    } catch (error) {
      if (!isSchemaGone(error)) throw error
      // Of several statements that miss a table, the first one migrates, and the others wait for it.
      if (this.#ready === ready) this.#ready = undefined
    }
    await this.ready()
    try {
      return await ask()
    } catch (error) {
      if (!isSchemaGone(error)) throw error
      const detail = `${detailOf(error)}. The table schema_step says that all steps are done: restore a backup, or drop schema_step and what is left of the tables.`
      throw new DatabaseUnavailable('The database has lost some of its tables.', detail)
    }
  }
}

/** PostgreSQL's codes for a table, schema, column, type or operator that is not there. */
const GONE_CODES = ['42P01', '3F000', '42703', '42704', '42883']

const isSchemaGone = (error: unknown): boolean => GONE_CODES.includes(String((error as { code?: unknown }).code))
