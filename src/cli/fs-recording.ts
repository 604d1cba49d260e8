import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { UsageError } from './command.ts'

/** The file that `spillway record` writes; it must be new. */
export class NewRecording {
  readonly #path: string
  readonly #file: number
  bytes = 0
  requests = 0
  lost = 0

  constructor(path: string) {
    this.#path = path
    try {
      // Tenants and times of a whole business are in it: for this user only.
      this.#file = openSync(path, 'wx', 0o600)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new UsageError(`${path} ${REASONS[code ?? ''] ?? `cannot be written (${code})`}.`)
    }
  }

  write(line: string): void {
    this.bytes += writeSync(this.#file, `${line}\n`)
    if (line.startsWith('{"lost":')) this.lost += Number(line.slice('{"lost":'.length, -1)) || 0
    else if (line.startsWith('{"atUs":')) this.requests++
  }

  /** A file without a line is removed: nothing was recorded. */
  close(): void {
    closeSync(this.#file)
    if (this.bytes === 0) rmSync(this.#path)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EEXIST: 'is there already. Give another name, or remove it',
  ENOENT: 'cannot be written: its folder is not there. Make the folder first',
  EACCES: 'may not be written. Choose another place',
  EISDIR: 'is a folder. Give the path of a file',
}
