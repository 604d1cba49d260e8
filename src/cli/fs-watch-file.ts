import { readFileSync } from 'node:fs'
import { type CancelTimer, type Clock, secondsToUs } from '../base/clock.ts'

/**
 * Has the text of a file become another one? Looked at once a second by its path and its text, and not by the system's
 * notifications: editors replace files, Kubernetes swaps links, and network disks notify nobody. A text is taken when
 * two looks in a row have found it, so that a file that is being written is not read half. A file that is away for a
 * moment is not a change.
 */
export interface FileWatchParts {
  readonly path: string
  readonly clock: Clock
  readonly onChange: () => void
  /** The text that is in use already; what the file holds now if absent. */
  readonly taken?: string | undefined
  /** A test brings its own. */
  readonly read?: (path: string) => string | undefined
}

/** A configuration of a thousand tenants is read in a millisecond. */
const LOOK_US = secondsToUs(1)

export class FileWatch {
  readonly #parts: FileWatchParts
  readonly #read: (path: string) => string | undefined
  /** What was taken last, and what the last look found. */
  #taken: string | undefined
  #seen: string | undefined
  #cancel: CancelTimer

  constructor(parts: FileWatchParts) {
    this.#parts = parts
    this.#read = parts.read ?? readIfThere
    this.#seen = this.#read(parts.path)
    this.#taken = parts.taken ?? this.#seen
    this.#cancel = this.#later()
  }

  stop(): void {
    this.#cancel()
  }

  #look(): void {
    const text = this.#read(this.#parts.path)
    const isSettled = text === this.#seen
    this.#seen = text
    this.#cancel = this.#later()
    if (text === undefined || !isSettled || text === this.#taken) return
    this.#taken = text
    this.#parts.onChange()
  }

  #later(): CancelTimer {
    const { clock } = this.#parts
    return clock.at(clock.now() + LOOK_US, () => this.#look())
  }
}

export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
