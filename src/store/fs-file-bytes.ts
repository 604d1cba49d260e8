import { closeSync, existsSync, fdatasync, mkdirSync, open, openSync, read, rm, write } from 'node:fs'
import type { FileAppender, FileBytes } from '../lifecycle/job-ports.ts'

/**
 * Files on the disk, one for each, in one folder: where the database is embedded, because bytes in files are quicker
 * there and take no memory. A file has its last name from the start; what knows of it is the row that is written when it
 * is complete, so an upload that breaks off leaves bytes that nobody can ask for, and is removed.
 */

/** Ids are ours: letters, digits, dashes. Anything else would be a path. */
const ID = /^[A-Za-z0-9_-]{1,128}$/

export class FsFileBytes implements FileBytes {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  append(fileId: string): FileAppender {
    const path = this.#pathOf(fileId)
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const fd = openSync(path, 'w', 0o600)
    let size = 0
    let isOpen = true
    const close = (): void => {
      if (isOpen) closeSync(fd)
      isOpen = false
    }
    return {
      async write(piece) {
        for (let at = 0; at < piece.length; ) {
          at += await called<number>((done) => write(fd, piece, at, piece.length - at, size + at, done))
        }
        size += piece.length
      },
      async end() {
        await called<void>((done) => fdatasync(fd, done))
        close()
        return size
      },
      drop: () => {
        close()
        return this.remove(fileId)
      },
    }
  }

  async read(fileId: string, at: number, length: number): Promise<Uint8Array> {
    const path = this.#pathOf(fileId)
    if (length <= 0 || !existsSync(path)) return new Uint8Array()
    const fd = await called<number>((done) => open(path, 'r', done))
    try {
      const bytes = Buffer.allocUnsafe(length)
      let got = 0
      while (got < length) {
        const from = got
        const more = await called<number>((done) => read(fd, bytes, from, length - from, at + from, done))
        if (more === 0) break
        got += more
      }
      return bytes.subarray(0, got)
    } finally {
      closeSync(fd)
    }
  }

  async remove(fileId: string): Promise<void> {
    await called<void>((done) => rm(this.#pathOf(fileId), { force: true }, done))
  }

  #pathOf(fileId: string): string {
    if (!ID.test(fileId)) throw new Error('no id of a file')
    return `${this.#folder}/${fileId}`
  }
}

type Done<T> = (error: Error | null, value: T) => void

/** A call of Node's as a promise. */
function called<T>(call: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    call((error, value) => (error === null ? resolve(value) : reject(error)))
  })
}
