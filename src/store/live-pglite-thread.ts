import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'
import { dataDir as readyMade } from '@electric-sql/pglite-prepopulatedfs'
import type { Parameter } from './database.ts'
import { lockFolder } from './fs-store-lock.ts'
import { PreparedStatements } from './live-prepared-statements.ts'

/**
 * The embedded database in its own thread: PGlite computes on the thread that owns it, and a search of 14 ms would
 * stall every stream of the gateway. One statement at a time; `live-pglite.ts` has the queue.
 */
export interface ThreadAsk {
  readonly id: number
  readonly sql: string
  /** Absent for a script of several statements. */
  readonly parameters?: readonly Parameter[]
}

export type ThreadAnswer =
  | { readonly id: number; readonly rows: readonly Record<string, unknown>[] }
  | { readonly id: number; readonly error: { readonly message: string; readonly code: string | undefined } }

export interface ThreadData {
  /** Folder of the database; in memory if absent. */
  readonly path: string | undefined
  /** Statements at the start of every session. */
  readonly session: string
}

const { path, session } = workerData as ThreadData

let unlock = (): void => {}

async function open(): Promise<PGlite> {
  const isEmpty = path === undefined || !existsSync(path) || readdirSync(path).length === 0
  if (path !== undefined && isEmpty) mkdirSync(path, { recursive: true, mode: 0o700 })
  if (path !== undefined) unlock = lockFolder(path, process.pid)
  return PGlite.create({
    ...(path === undefined ? {} : { dataDir: path }),
    // A prepared empty database opens in a second; making one takes five.
    ...(isEmpty ? { loadDataDir: await readyMade() } : {}),
    extensions: { vector },
  })
}

/** A search computes for some milliseconds while streams wait to be written: streams go first. */
const NICENESS = 2

const port = parentPort
if (port !== null) {
  // On Linux this sets the calling thread alone, as intended; elsewhere it would slow the whole process.
  if (process.platform === 'linux') setPriority(NICENESS)
  const database = await open()
  await database.exec(session)
  const statements = new PreparedStatements(database)
  port.on('message', (ask: ThreadAsk | 'close') => {
    if (ask === 'close')
      void database.close().finally(() => {
        unlock()
        port.close()
      })
    else void answer(ask).then((message) => port.postMessage(message))
  })
  port.postMessage('open')

  const answer = async ({ id, sql, parameters }: ThreadAsk): Promise<ThreadAnswer> => {
    // PostgreSQL goes on with its open files when their folder was deleted, and nothing that it writes is kept.
    if (path !== undefined && !existsSync(`${path}/PG_VERSION`)) {
      return { id, error: { message: `the folder ${path} was deleted`, code: undefined } }
    }
    try {
      if (parameters === undefined) {
        await database.exec(sql)
        return { id, rows: [] }
      }
      return { id, rows: await statements.query(sql, parameters) }
    } catch (error) {
      const { message, code } = error as { message?: string; code?: string }
      return { id, error: { message: message ?? String(error), code } }
    }
  }
}
