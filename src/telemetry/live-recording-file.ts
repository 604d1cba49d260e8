import { promises as fs } from 'node:fs'
import type { RecordingOut } from './recorder.ts'
import { lostLine } from './recording-line.ts'

/**
 * A recording in files of bounded size. The newest file has the configured path, the one before it `PATH.1`, and so on;
 * the oldest is overwritten. Every file begins with the recording's header, so each can be played alone, and joined in
 * the order of time they are the whole recording.
 *
 * Writing never waits: lines are gathered up to a bound, one write runs at a time, and a line without room is refused.
 * When the disk fails, the recorder says so once, loses lines for a while, and tries again.
 */
export interface RecordingFileOptions {
  readonly path: string
  readonly fileBytesMax: number
  /** Files in all, with the newest. */
  readonly filesMax: number
  readonly onTrouble: (because: string) => void
  readonly nowMs?: () => number
}

/** Characters that may wait for the disk: ten seconds of a thousand requests a second. */
const WAITING_CHARS_MAX = 4_000_000
/** Lines are written when they fill a write of this size, or after this long: each write wakes a thread of the pool. */
const GATHER_CHARS = 64_000
const GATHER_MS = 250
/** Characters of one write. */
const WRITE_CHARS_MAX = 256_000
/** Time without a try after the disk has failed. */
const PAUSE_MS = 10_000
const CLOSE_MS_MAX = 1_000

export class RecordingFile implements RecordingOut {
  readonly #options: RecordingFileOptions
  readonly #nowMs: () => number
  #header = ''
  #waiting = ''
  #lost = 0
  #file: fs.FileHandle | undefined
  #fileBytes = 0
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #isInTrouble = false
  #writing: Promise<void> | undefined
  #soon: NodeJS.Timeout | undefined

  constructor(options: RecordingFileOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
  }

  write(line: string): boolean {
    if (this.#header === '') {
      // The first line is the header, which every file begins with.
      this.#header = line
      return true
    }
    if (this.#nowMs() < this.#pausedUntilMs || this.#waiting.length + line.length > WAITING_CHARS_MAX) return false
    this.#waiting += line
    return true
  }

  flush(): void {
    if (this.#waiting === '' || this.#writing !== undefined) return
    if (this.#waiting.length >= GATHER_CHARS) this.#writeNow()
    else this.#soon ??= setTimeout(() => this.#writeNow(), GATHER_MS).unref()
  }

  #writeNow(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    if (this.#writing !== undefined) return
    this.#writing = this.#writeAll().finally(() => {
      this.#writing = undefined
    })
  }

  /** Writes what is left, for a second at most. */
  async close(): Promise<void> {
    clearTimeout(this.#soon)
    this.#soon = undefined
    let timer: NodeJS.Timeout | undefined
    const giveUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS_MAX)
    })
    const rest = async (): Promise<void> => {
      await this.#writing
      if (this.#waiting !== '') await this.#writeAll()
      await this.#file?.close()
      this.#file = undefined
    }
    await Promise.race([rest().catch(() => {}), giveUp])
    clearTimeout(timer)
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting !== '') {
      const text = this.#takeLines()
      try {
        await this.#append(text)
        this.#isInTrouble = false
      } catch (error) {
        this.#fail(error, text)
        return
      }
    }
  }

  /** Whole lines, so that a file never ends within one. */
  #takeLines(): string {
    const end = this.#waiting.length <= WRITE_CHARS_MAX ? -1 : this.#waiting.indexOf('\n', WRITE_CHARS_MAX)
    const text = end < 0 ? this.#waiting : this.#waiting.slice(0, end + 1)
    this.#waiting = this.#waiting.slice(text.length)
    return text
  }

  async #append(text: string): Promise<void> {
    const told = this.#lost === 0 ? text : lostLine(this.#lost) + text
    const bytes = Buffer.from(told)
    if (this.#file === undefined || this.#fileBytes + bytes.length > this.#options.fileBytesMax) await this.#turnOver()
    await this.#file?.appendFile(bytes)
    this.#fileBytes += bytes.length
    this.#lost = 0
  }

  /** The files move up by one, and a new one begins. */
  async #turnOver(): Promise<void> {
    const { path, filesMax } = this.#options
    await this.#file?.close()
    this.#file = undefined
    const nameOf = (age: number): string => (age === 0 ? path : `${path}.${age}`)
    for (let age = filesMax - 1; age > 0; age--) {
      await fs.rename(nameOf(age - 1), nameOf(age)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
    }
    // Tenants and times of a whole business are in it: for this user only.
    this.#file = await fs.open(path, 'w', 0o600)
    await this.#file.appendFile(this.#header)
    this.#fileBytes = Buffer.byteLength(this.#header)
  }

  #fail(error: unknown, text: string): void {
    this.#lost += text.split('\n').length - 1
    this.#pausedUntilMs = this.#nowMs() + PAUSE_MS
    void this.#file?.close().catch(() => {})
    this.#file = undefined
    if (this.#isInTrouble) return
    this.#isInTrouble = true
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === undefined ? message : (REASONS[code] ?? code)
    this.#options.onTrouble(`the recording ${this.#options.path} cannot be written: ${why}. Requests go on unrecorded.`)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its folder is not there',
  EACCES: 'no permission',
  EISDIR: 'it is a folder; give the path of a file',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
}
