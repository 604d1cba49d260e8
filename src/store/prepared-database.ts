import type { Database, Parameter, QueryOptions, Row, RunOptions } from './database.ts'

/** A database that is migrated before its first statement; if that fails, the next statement tries again. */
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
      throw error
    })
    return this.#ready
  }

  async query(sql: string, parameters: readonly Parameter[], options?: QueryOptions): Promise<readonly Row[]> {
    await this.ready()
    return this.#inner.query(sql, parameters, options)
  }

  async run(script: string, options?: RunOptions): Promise<void> {
    await this.ready()
    return this.#inner.run(script, options)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}
