import { LiveClock } from '../../src/base/live-clock.ts'
import type { Database } from '../../src/store/database.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PgDatabase } from '../../src/store/pg-database.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { missing } from './installed.ts'
import { startPostgres } from './servers.ts'

/** What a store may stand on: contract suites run on all of them. Each opens empty, with the newest schema. */
export interface DatabaseKind {
  readonly name: string
  /** Why it cannot be had here; undefined when it can. */
  readonly whyNot: string | undefined
  readonly open: () => Promise<OpenedDatabase>
}

export interface OpenedDatabase {
  /** Undefined where the store keeps everything in memory. */
  readonly database: Database | undefined
  close(): Promise<void>
}

const clock = new LiveClock()
const prepared = (database: Database): Database => new PreparedDatabase(database, (db) => migrate(db))

const MEMORY: DatabaseKind = {
  name: 'memory',
  whyNot: undefined,
  open: () => Promise.resolve({ database: undefined, close: () => Promise.resolve() }),
}

const PGLITE: DatabaseKind = {
  name: 'PGlite',
  whyNot: undefined,
  open() {
    const database = prepared(new PgliteDatabase({ clock, path: undefined }))
    return Promise.resolve({ database, close: () => database.close() })
  },
}

const POSTGRES: DatabaseKind = {
  name: 'PostgreSQL',
  whyNot: missing('postgresql'),
  async open() {
    const server = await startPostgres()
    const database = prepared(new PgDatabase({ clock, url: server.url }))
    return {
      database,
      async close() {
        await database.close()
        await server.close()
      },
    }
  },
}

export const SQL_DATABASES: readonly DatabaseKind[] = [PGLITE, POSTGRES]
export const DATABASES: readonly DatabaseKind[] = [MEMORY, ...SQL_DATABASES]
