import pg from 'pg'
import type { Clock } from '../base/clock.ts'
import { msToUs } from '../base/clock.ts'
import {
  type Database,
  DatabaseUnavailable,
  type Parameter,
  QueryCancelled,
  type QueryOptions,
  type Row,
  type RunOptions,
} from './database.ts'
import { cancelInDatabase } from './pg-cancel.ts'
import { makePgSocket } from './pg-socket.ts'
import { SESSION_SETTINGS } from './session-settings.ts'

/**
 * A PostgreSQL server behind a small pool. A cancelled query is cancelled in the server too; a session that does not
 * react is closed, so that a hanging server costs connections and never a place in the pool.
 */
export interface PgOptions {
  readonly clock: Clock
  /** As a function it is asked for every new connection: an address that is kept in a file may have another password. */
  readonly url: string | (() => string)
  readonly connectionsMax?: number
  readonly connectMsMax?: number
  readonly statementMsMax?: number
  /** Called for a broken idle connection, which is replaced by itself. */
  readonly onIdleError?: (error: Error) => void
}

/** Enough for twenty searches a second at 50 ms each, several times over; PostgreSQL allows 100 by default. */
export const PG_CONNECTIONS_MAX = 10
/** A connection takes a millisecond or two in one data centre; after a second the server counts as down. */
const CONNECT_MS_MAX = 1_000
/** Deleting a large corpus takes seconds. */
const STATEMENT_MS_MAX = 30_000
/** A healthy server reacts to a cancellation within a round trip. */
const CANCEL_GRACE_US = msToUs(100)

export class PgDatabase implements Database {
  readonly #clock: Clock
  readonly #pool: pg.Pool
  readonly #statementMsMax: number

  constructor(options: PgOptions) {
    this.#clock = options.clock
    this.#statementMsMax = options.statementMsMax ?? STATEMENT_MS_MAX
    this.#pool = new pg.Pool({
      max: options.connectionsMax ?? PG_CONNECTIONS_MAX,
      connectionTimeoutMillis: options.connectMsMax ?? CONNECT_MS_MAX,
      idleTimeoutMillis: 30_000,
      keepAlive: true,
      application_name: 'spillway',
      stream: makePgSocket,
      statement_timeout: this.#statementMsMax,
      // The pool waits for the returned promise, although its type does not say so.
      onConnect: (client) => client.query(SESSION_SETTINGS) as unknown as undefined,
    })
    const { url } = options
    // The pool makes each connection from its options as they are then.
    const get = typeof url === 'string' ? (): string => url : url
    Object.defineProperty(this.#pool.options, 'connectionString', { get, enumerable: true })
    this.#pool.on('error', (error) => options.onIdleError?.(error))
    // The pool hears errors of idle connections only. A connection that breaks under a statement fails the statement and
    // says so as an event, too; without a listener that event would end the process.
    this.#pool.on('connect', (client) => client.on('error', () => {}))
  }

  async query(sql: string, parameters: readonly Parameter[], options: QueryOptions = {}): Promise<readonly Row[]> {
    const { cancellation } = options
    if (cancellation?.isCancelled) throw new QueryCancelled(cancellation.because)
    const client = await this.#connect(cancellation)
    return this.#ask(client, () => client.query(sql, [...parameters]).then(({ rows }) => rows as Row[]), options)
  }

  async run(script: string, { msMax = this.#statementMsMax }: RunOptions = {}): Promise<void> {
    const client = await this.#connect(undefined)
    const limited = `set statement_timeout = ${msMax};\n${script};\nset statement_timeout = ${this.#statementMsMax};`
    await this.#ask(client, () => client.query(limited).then(() => []), {}, msMax)
  }

  async close(): Promise<void> {
    await this.#pool.end()
  }

  async #connect(cancellation: QueryOptions['cancellation']): Promise<pg.PoolClient> {
    const connecting = this.#pool.connect().catch((error: unknown) => {
      throw unavailable(error)
    })
    if (cancellation === undefined) return connecting
    let forget = (): void => {}
    const cancelled = new Promise<never>((_, reject) => {
      forget = cancellation.onCancel((because) => reject(new QueryCancelled(because)))
    })
    try {
      return await Promise.race([connecting, cancelled])
    } catch (error) {
      // A connection that comes after the caller gave up goes back to the pool.
      connecting.then(
        (client) => client.release(),
        () => {},
      )
      throw error
    } finally {
      forget()
    }
  }

  async #ask(
    client: pg.PoolClient,
    ask: () => Promise<readonly Row[]>,
    { cancellation }: QueryOptions,
    msMax = this.#statementMsMax,
  ): Promise<readonly Row[]> {
    let isReleased = false
    const release = (isBroken: boolean): void => {
      if (isReleased) return
      isReleased = true
      if (isBroken) streamOf(client)?.destroy()
      client.release(isBroken)
    }
    return new Promise((resolve, reject) => {
      // The server's own limit comes first; this one is for a server that does not answer at all.
      const forgetHang = this.#clock.at(this.#clock.now() + msToUs(msMax + 1_000), () => {
        release(true)
        reject(new DatabaseUnavailable('The database does not answer.'))
      })
      const forgetCancel = cancellation?.onCancel((because) => {
        reject(new QueryCancelled(because))
        cancelSession(client)
        this.#clock.at(this.#clock.now() + CANCEL_GRACE_US, () => release(true))
      })
      ask()
        .then(
          (rows) => {
            release(false)
            resolve(rows)
          },
          (error: unknown) => {
            const isBroken = !isSqlError(error)
            // A failed script leaves its time limit set in the session.
            release(isBroken || msMax !== this.#statementMsMax)
            reject(isBroken ? unavailable(error) : error)
          },
        )
        .finally(() => {
          forgetHang()
          forgetCancel?.()
        })
    })
  }
}

/** Fields of pg's session that its types leave out. */
interface Internals {
  readonly processID?: number
  readonly secretKey?: number
  readonly host?: string
  readonly port?: number
  readonly connection?: { readonly stream?: { destroy(): void } }
}

const streamOf = (client: pg.PoolClient): { destroy(): void } | undefined =>
  (client as unknown as Internals).connection?.stream

function cancelSession(client: pg.PoolClient): void {
  const { processID, secretKey, host, port } = client as unknown as Internals
  if (processID === undefined || secretKey === undefined) return
  cancelInDatabase({ host: host ?? 'localhost', port: port ?? 5432, processId: processID, secretKey })
}

/** Five characters: the server refused the statement. Classes 57 and 53 say that the server itself has trouble. */
function isSqlError(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^(57P|53|08)/.test(code)
}

function unavailable(error: unknown): DatabaseUnavailable {
  const { message, code } = error as { message?: string; code?: string }
  const known = code === undefined ? '' : ` (${code})`
  return new DatabaseUnavailable(`The database cannot be reached${known}.`, message ?? String(error))
}
