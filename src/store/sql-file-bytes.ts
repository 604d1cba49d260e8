import type { FileAppender, FileBytes } from '../lifecycle/job-ports.ts'
import type { Database } from './database.ts'
import { jobDatabase } from './job-database.ts'

/**
 * Files in the database, in pages: for several gateways, which have no disk in common. A page is large enough that a
 * file of 200 MB has some hundreds of rows, and small enough that a line is read without much beside it.
 */
export const PAGE_BYTES = 256 * 1_024
/** Files that the runner and clients read and write must not wait behind searches. */
const FILES = { lane: '/files' } as const

const ADD_PAGE = `insert into job_file_page (file_id, no, bytes) values ($1, $2, $3)`
const READ_PAGES = `select bytes from job_file_page where file_id = $1 and no between $2::int and $3::int order by no`
const DROP_PAGES = 'delete from job_file_page where file_id = $1'

export class SqlFileBytes implements FileBytes {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = jobDatabase(database)
  }

  append(fileId: string): FileAppender {
    const database = this.#database
    let page = Buffer.allocUnsafe(PAGE_BYTES)
    let used = 0
    let pages = 0
    const flush = async (): Promise<void> => {
      if (used === 0) return
      const full = page.subarray(0, used)
      const no = pages++
      page = Buffer.allocUnsafe(PAGE_BYTES)
      used = 0
      await database.query(ADD_PAGE, [fileId, no, full], FILES)
    }
    return {
      async write(piece) {
        let at = 0
        while (at < piece.length) {
          const part = piece.subarray(at, at + PAGE_BYTES - used)
          page.set(part, used)
          used += part.length
          at += part.length
          if (used === PAGE_BYTES) await flush()
        }
      },
      async end() {
        const bytes = pages * PAGE_BYTES + used
        await flush()
        return bytes
      },
      drop: () => this.remove(fileId),
    }
  }

  async read(fileId: string, at: number, length: number): Promise<Uint8Array> {
    if (length <= 0) return new Uint8Array()
    const first = Math.floor(at / PAGE_BYTES)
    const last = Math.floor((at + length - 1) / PAGE_BYTES)
    const rows = await this.#database.query(READ_PAGES, [fileId, first, last], FILES)
    const pages = rows.map((row) => row['bytes'] as Uint8Array)
    const all = pages.length === 1 ? (pages[0] as Uint8Array) : Buffer.concat(pages)
    const from = at - first * PAGE_BYTES
    return all.subarray(from, from + length)
  }

  async remove(fileId: string): Promise<void> {
    await this.#database.query(DROP_PAGES, [fileId], FILES)
  }
}
