import { CallFault, type CallLine, LineAway } from '../base/call-line.ts'
import { Cancellation } from '../base/cancellation.ts'
import { secondsToUs } from '../base/clock.ts'
import {
  type Database,
  DatabaseUnavailable,
  type Parameter,
  QueryCancelled,
  type QueryOptions,
  type Row,
  type RunOptions,
} from './database.ts'

/**
 * A database that another process owns, asked over a line: the embedded folder has one owner, and the processes of a
 * host ask it. The owner has the queue and the lanes; here calls are bounded by the line, and each ends in its time.
 */

/** A statement's own limit is a minute; it may wait as long for its turn. */
const QUERY_US_MAX = secondsToUs(120)

interface QueryCall {
  readonly key: number
  readonly sql: string
  readonly parameters: readonly Parameter[]
  readonly isUrgent: boolean
  readonly lane: string | undefined
}

interface RunCall {
  readonly script: string
  readonly msMax: number | undefined
}

export class LineDatabase implements Database {
  readonly #line: CallLine
  #lastKey = 0

  constructor(line: CallLine) {
    this.#line = line
  }

  async query(
    sql: string,
    parameters: readonly Parameter[],
    { cancellation, isUrgent = false, lane }: QueryOptions = {},
  ): Promise<readonly Row[]> {
    if (cancellation?.isCancelled === true) throw new QueryCancelled(cancellation.because)
    const key = ++this.#lastKey
    const forget = cancellation?.onCancel(() => this.#line.say('database-cancel', key))
    try {
      const call: QueryCall = { key, sql, parameters, isUrgent, lane }
      return (await this.#line.ask('database-query', call, QUERY_US_MAX)) as readonly Row[]
    } catch (error) {
      throw asDatabaseError(error)
    } finally {
      forget?.()
    }
  }

  async run(script: string, { msMax }: RunOptions = {}): Promise<void> {
    const call: RunCall = { script, msMax }
    try {
      await this.#line.ask('database-run', call, Math.max(QUERY_US_MAX, 2_000 * (msMax ?? 0)))
    } catch (error) {
      throw asDatabaseError(error)
    }
  }

  /** Resolves when the owner has opened and migrated the database. */
  async ready(): Promise<void> {
    try {
      await this.#line.ask('database-ready', undefined, QUERY_US_MAX)
    } catch (error) {
      throw asDatabaseError(error)
    }
  }

  /** The owner closes it. */
  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** Answers a line's statements from this process's database. */
export function offerDatabase(line: CallLine, database: Database, ready: () => Promise<unknown>): void {
  /** Statements under way, for their cancellation: bounded by the calls of the other end. */
  const underWay = new Map<number, Cancellation>()
  line.on('database-query', async ({ key, sql, parameters, isUrgent, lane }: QueryCall) => {
    const cancellation = new Cancellation()
    underWay.set(key, cancellation)
    try {
      return await database.query(sql, parameters, { cancellation, isUrgent, lane })
    } finally {
      underWay.delete(key)
    }
  })
  line.on('database-cancel', (key: number) => underWay.get(key)?.cancel('called off by the process that asked'))
  line.on('database-run', ({ script, msMax }: RunCall) => database.run(script, msMax === undefined ? {} : { msMax }))
  line.on('database-ready', async () => {
    await ready()
  })
}

/** The error that the database itself would have thrown in this process. */
function asDatabaseError(error: unknown): unknown {
  if (error instanceof LineAway) {
    return new DatabaseUnavailable('The embedded database did not answer.', `The supervisor: ${error.message}.`)
  }
  if (!(error instanceof CallFault)) return error
  if (error.name === 'DatabaseUnavailable') return new DatabaseUnavailable(error.message, error.detail)
  if (error.name === 'QueryCancelled') return new QueryCancelled(error.message)
  return Object.assign(new Error(error.message), { code: error.code })
}
