import { constants, fstatSync, openSync, write } from 'node:fs'
import type { LogDestination } from './log.ts'

/**
 * Writes lines to a file descriptor without waiting for its reader. A log collector that stops reading would otherwise
 * stop the service, because standard output blocks when its pipe is full. Lines are gathered, one write runs at a time,
 * and what cannot be written is tried again later. Beyond a bound lines are lost, and `write` throws so that the
 * journal counts them.
 */
export interface LiveLog extends LogDestination {
  /** Writes what is left, for a second at most: only for the end of the process. */
  close(): Promise<void>
}

/**
 * Characters that may wait: twenty seconds of lines at 100 requests a second. A reader that pauses longer has stopped.
 */
const WAITING_CHARS_MAX = 1_000_000

/**
 * Pause before the next try, for a full pipe or a full disk; it doubles while nothing moves. A pipe holds 64 kB, so the
 * shortest pause allows 6 MB a second, and the longest costs next to nothing.
 */
const RETRY_MS_MIN = 10
const RETRY_MS_MAX = 320

/**
 * Lines are written when they fill a pipe, or after this long. Each write wakes a thread of the pool, which on a busy
 * machine costs as much as making a hundred lines.
 */
const GATHER_CHARS = 64_000
const GATHER_MS = 50

const CLOSE_MS_MAX = 1_000

const STDOUT = 1

export function makeLiveLog(fileDescriptor: number = STDOUT): LiveLog {
  return new FileDescriptorLog(nonBlockingTwin(fileDescriptor))
}

/**
 * A blocked write occupies a thread, and `process.exit` waits for it: the process would hang on a full pipe. Where the
 * system shows descriptors as files, a pipe can be opened a second time without blocking; elsewhere the descriptor is
 * used as it is.
 */
function nonBlockingTwin(fileDescriptor: number): number {
  try {
    if (!fstatSync(fileDescriptor).isFIFO()) return fileDescriptor
    return openSync(`/proc/self/fd/${fileDescriptor}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return fileDescriptor
  }
}

class FileDescriptorLog implements LiveLog {
  readonly #fileDescriptor: number
  #gathered = ''
  /** The bytes that the running write has not written yet. */
  #sending: Buffer | undefined
  #retryMs = RETRY_MS_MIN
  #onEmpty: (() => void) | undefined
  #soon: NodeJS.Timeout | undefined

  constructor(fileDescriptor: number) {
    this.#fileDescriptor = fileDescriptor
  }

  write(line: string): void {
    if (this.#gathered.length + line.length > WAITING_CHARS_MAX) throw new Error('the log cannot keep up: line lost')
    this.#gathered += line
  }

  flush(): void {
    if (this.#gathered.length >= GATHER_CHARS) this.#sendNow()
    else if (this.#gathered !== '') this.#soon ??= setTimeout(() => this.#sendNow(), GATHER_MS)
  }

  #sendNow(): void {
    clearTimeout(this.#soon)
    this.#soon = undefined
    if (this.#sending !== undefined) return
    if (this.#gathered === '') {
      this.#onEmpty?.()
      return
    }
    this.#sending = Buffer.from(this.#gathered)
    this.#gathered = ''
    this.#send(this.#sending)
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      const giveUp = setTimeout(resolve, CLOSE_MS_MAX)
      this.#onEmpty = () => {
        clearTimeout(giveUp)
        resolve()
      }
      this.#sendNow()
    })
  }

  #send(bytes: Buffer): void {
    write(this.#fileDescriptor, bytes, (error, count) => {
      if (error !== null) {
        setTimeout(() => this.#send(bytes), this.#retryMs).unref()
        this.#retryMs = Math.min(RETRY_MS_MAX, this.#retryMs * 2)
        return
      }
      this.#retryMs = RETRY_MS_MIN
      this.#sending = count < bytes.length ? bytes.subarray(count) : undefined
      if (this.#sending !== undefined) this.#send(this.#sending)
      else if (this.#onEmpty !== undefined) this.#sendNow()
      else this.flush()
    })
  }
}
