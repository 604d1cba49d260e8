import { readFileSync } from 'node:fs'
import { type CancelTimer, type Clock, secondsToUs } from '../base/clock.ts'
import type { SecretFile } from '../config/schema.ts'

/**
 * Reports when the text of a file has changed. The watch reads the path once a second and does not use the system's
 * notifications: editors replace files, Kubernetes swaps links, and network disks send no notifications. A new text
 * counts when two looks in a row have found it, so that a half-written file is not taken. A missing file is no change.
 */
export interface FileWatchParts {
  readonly path: string
  readonly clock: Clock
  readonly onChange: () => void
  /** The text that is in use already; the file's present text if absent. */
  readonly taken?: string | undefined
  /** A test brings its own. */
  readonly read?: (path: string) => string | undefined
}

/** Time between two looks. Reading a configuration of a thousand tenants takes a millisecond. */
const LOOK_US = secondsToUs(1)

export class FileWatch {
  readonly #parts: FileWatchParts
  readonly #read: (path: string) => string | undefined
  /** The text that was taken last, and the text that the last look found. */
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

/**
 * Reports when one of the files with secrets has changed. Mounted secrets are links that are swapped, all at once: a look
 * in between sees a whole old one or a whole new one.
 */
export class SecretWatch {
  readonly #watch: FileWatch | undefined

  constructor(parts: { clock: Clock; files: readonly SecretFile[]; taken: string | undefined; onChange: () => void }) {
    const { clock, files, taken, onChange } = parts
    const read = (): string | undefined => secretTexts(files)
    this.#watch = files.length === 0 ? undefined : new FileWatch({ path: '', clock, onChange, taken, read })
  }

  stop(): void {
    this.#watch?.stop()
  }
}

/** Undefined while one of them is missing: it is being replaced, or gone, and neither is a new secret. */
export function secretTexts(files: readonly SecretFile[]): string | undefined {
  const texts = [...new Set(files.map(({ path }) => path))].slice(0, SECRET_FILES_MAX).map(readIfThere)
  return texts.includes(undefined) ? undefined : JSON.stringify(texts)
}

/** Files that are looked at each second. */
const SECRET_FILES_MAX = 1_000

export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
