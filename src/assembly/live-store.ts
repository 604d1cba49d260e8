import { existsSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import type { Database, Notice } from '../store/database.ts'
import { PgliteDatabase } from '../store/live-pglite.ts'
import { migrate } from '../store/migrate.ts'
import { PreparedDatabase } from '../store/prepared-database.ts'
import { LanedDatabase, type LanedDatabaseOptions } from './laned-database.ts'

/**
 * The one database of a process, shared by all its users: an embedded folder has one owner, and connections to a server
 * are shared. Nothing is opened before the first statement.
 */
export interface LiveStore {
  readonly database: Database
  /** The store has been used before: a server is configured, or the embedded folder exists. */
  readonly isInUse: boolean
  /** What is written outlives the process. */
  readonly isDurable: boolean
  /** Other processes may write to the store too. */
  readonly isShared: boolean
  /** Hears what other processes write, where they can; the returned function ends it. Notices may be lost. */
  listen(onNotice: (notice: Notice) => void): () => Promise<void>
  ready(): Promise<unknown>
  close(): Promise<void>
}

/** The embedded database has one thread. */
const EMBEDDED_PLACES = 1

/** As a path: nothing is written to disk. */
const MEMORY = 'memory:'

export async function makeLiveStore(
  { store }: Config,
  clock: Clock,
  complain: (problem: string) => void,
): Promise<LiveStore> {
  if (store.url === undefined) {
    const path = store.path === MEMORY ? undefined : store.path
    const isInUse = path !== undefined && existsSync(path)
    const embedded = new PgliteDatabase({ clock, path })
    return {
      ...laned(embedded, { clock, complain, placesMax: EMBEDDED_PLACES }),
      isInUse,
      isDurable: path !== undefined,
      isShared: false,
      listen: () => () => Promise.resolve(),
    }
  }
  const { PgDatabase, PG_CONNECTIONS_MAX } = await import('../store/pg-database.ts')
  const { PgNotices } = await import('../store/pg-notices.ts')
  const { url } = store
  const server = new PgDatabase({ clock, url })
  return {
    ...laned(server, { clock, complain, placesMax: PG_CONNECTIONS_MAX }),
    isInUse: true,
    isDurable: true,
    isShared: true,
    listen(onNotice) {
      const notices = new PgNotices({ clock, url, onNotice })
      notices.start()
      return () => notices.close()
    },
  }
}

function laned(opened: Database, options: LanedDatabaseOptions): Pick<LiveStore, 'database' | 'ready' | 'close'> {
  const prepared = new PreparedDatabase(opened, (database) => migrate(database))
  const database = new LanedDatabase(prepared, options)
  return { database: borrowed(database), ready: () => prepared.ready(), close: () => database.close() }
}

/** The same database without `close`: one user must not close it for the others. */
function borrowed(database: Database): Database {
  return {
    query: (sql, parameters, options) => database.query(sql, parameters, options),
    run: (script, options) => database.run(script, options),
    close: () => Promise.resolve(),
  }
}
