import { existsSync } from 'node:fs'
import type { CallLine } from '../base/call-line.ts'
import type { Clock } from '../base/clock.ts'
import { readSecretFile } from '../config/fs-secret-files.ts'
import type { Config } from '../config/schema.ts'
import type { Database, Notice } from '../store/database.ts'
import { LineDatabase } from '../store/line-database.ts'
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
  /** The database is PGlite, here or in the supervisor, and no server. */
  readonly isEmbedded: boolean
  ready(): Promise<unknown>
  close(): Promise<void>
}

/** The embedded database has one thread. */
const EMBEDDED_PLACES = 1

/** As a path: nothing is written to disk. */
const MEMORY = 'memory:'

export async function makeLiveStore(
  { store, secretFiles = [] }: Config,
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
      isEmbedded: true,
    }
  }
  const { PgDatabase, PG_CONNECTIONS_MAX } = await import('../store/pg-database.ts')
  const { PgNotices } = await import('../store/pg-notices.ts')
  const file = secretFiles.find(({ name }) => name === 'store.url')
  const url = file === undefined ? store.url : addressIn(file.path, store.url)
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
    isEmbedded: false,
  }
}

/**
 * The address of the server with the password that stands in its file now; what could be read last while the file is being
 * replaced. The server itself does not change under its users: another host in the file waits for a restart.
 */
function addressIn(path: string, first: string): () => string {
  const address = new URL(first)
  return () => {
    const read = readSecretFile(path)
    if ('value' in read && URL.canParse(read.value)) address.password = new URL(read.value).password
    return address.href
  }
}

/** Statements of one process at the database that its supervisor owns; the supervisor has one thread for them. */
const LINE_PLACES = 4

/**
 * The embedded database of the host, which its supervisor owns. It is opened at the start, because a process cannot see
 * whether another one has begun to use it.
 */
export function makeLineStore(
  line: CallLine,
  { store }: Config,
  options: Omit<LanedDatabaseOptions, 'placesMax'>,
): LiveStore {
  const asked = new LineDatabase(line)
  const database = new LanedDatabase(asked, { ...options, placesMax: LINE_PLACES })
  return {
    database: borrowed(database),
    ready: () => asked.ready(),
    close: () => database.close(),
    isInUse: true,
    isDurable: store.path !== MEMORY,
    isShared: true,
    isEmbedded: true,
    // Processes are told by their supervisor, and look by themselves.
    listen: () => () => Promise.resolve(),
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
