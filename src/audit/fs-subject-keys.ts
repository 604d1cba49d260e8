import { promises as fs } from 'node:fs'
import { join } from 'node:path'
import type { SubjectKey } from './seals.ts'

/**
 * The keys of subjects on the disk, beside the chain that they open: one file a day, a line for each key. Keys are
 * appended in groups; they are the only part of the audit that is ever written again, to erase one.
 */
const FILE = /^\d{4}-\d{2}-\d{2}\.keys$/
const DAY_MS = 86_400_000

export interface SubjectKeysOptions {
  /** The chain's folder. */
  readonly folder: string
  readonly nowMs: () => number
  readonly later: (ms: number, run: () => void) => () => void
  readonly complain: (problem: string) => void
}

/** Keys are written as often as events are committed. */
const WRITE_MS = 10
/** Keys in memory that the disk has not taken. Beyond it names of new subjects cannot be opened later. */
const WAITING_MAX = 100_000

export class FsSubjectKeys {
  readonly #options: SubjectKeysOptions
  #waiting: string[] = []
  #writing: Promise<void> = Promise.resolve()
  #isScheduled = false
  #isInTrouble = false
  #lost = 0

  constructor(options: SubjectKeysOptions) {
    this.#options = options
  }

  /** Keys that are written nowhere. */
  get lost(): number {
    return this.#lost
  }

  add({ id, tag, key }: SubjectKey): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.#lost++
      return
    }
    this.#waiting.push(`${id} ${tag} ${key.toString('base64url')}\n`)
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#options.later(this.#isInTrouble ? WRITE_MS * 100 : WRITE_MS, () => void this.flush())
  }

  /** Never rejects. */
  flush(): Promise<void> {
    return this.#next(async () => {
      this.#isScheduled = false
      if (this.#waiting.length === 0) return
      const lines = this.#waiting
      this.#waiting = []
      try {
        await this.#append(lines.join(''))
        this.#isInTrouble = false
      } catch (error) {
        this.#waiting = [...lines, ...this.#waiting]
        if (!this.#isInTrouble) this.#options.complain(`audit: keys of subjects cannot be written: ${String(error)}`)
        this.#isInTrouble = true
      }
    })
  }

  /** Destroys the keys of a subject; answers how many there were. */
  erase(tag: string): Promise<number> {
    return this.#next(async () => {
      let count = 0
      const keep = (line: string): boolean => line.split(' ')[1] !== tag
      const waiting = this.#waiting.filter(keep)
      count += this.#waiting.length - waiting.length
      this.#waiting = waiting
      for (const path of await keyFiles(this.#options.folder)) {
        const lines = (await fs.readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
        const kept = lines.filter(keep)
        count += lines.length - kept.length
        if (kept.length < lines.length) await replace(path, kept.map((line) => `${line}\n`).join(''))
      }
      return count
    })
  }

  /** Removes keys of days whose events are gone. */
  async trim(beforeMs: number): Promise<void> {
    for (const path of await keyFiles(this.#options.folder)) {
      const day = Date.parse(path.slice(-'YYYY-MM-DD.keys'.length, -'.keys'.length))
      // A subject's key is in use for as long as the process remembers it.
      if (day + 8 * DAY_MS < beforeMs) await fs.unlink(path)
    }
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#writing.then(work)
    this.#writing = done.then(
      () => {},
      () => {},
    )
    return done
  }

  async #append(text: string): Promise<void> {
    const folder = join(this.#options.folder, 'keys')
    await fs.mkdir(folder, { recursive: true, mode: 0o700 })
    const day = new Date(this.#options.nowMs()).toISOString().slice(0, 10)
    const file = await fs.open(join(folder, `${day}.keys`), 'a', 0o600)
    try {
      await file.write(text)
      await file.datasync()
    } finally {
      await file.close()
    }
  }
}

async function keyFiles(folder: string): Promise<string[]> {
  const names = await fs.readdir(join(folder, 'keys')).catch(() => [])
  return names
    .filter((name) => FILE.test(name))
    .sort()
    .map((name) => join(folder, 'keys', name))
}

async function replace(path: string, text: string): Promise<void> {
  const file = await fs.open(`${path}.new`, 'w', 0o600)
  try {
    await file.write(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await fs.rename(`${path}.new`, path)
}

/** All keys of a chain, by id; with a tag, those of one subject. */
export async function readSubjectKeys(folder: string, tag?: string): Promise<ReadonlyMap<string, Buffer>> {
  const keys = new Map<string, Buffer>()
  for (const path of await keyFiles(folder)) {
    for (const line of (await fs.readFile(path, 'utf8')).split('\n')) {
      const [id, whose, key] = line.split(' ')
      if (id === undefined || key === undefined || (tag !== undefined && whose !== tag)) continue
      keys.set(id, Buffer.from(key, 'base64url'))
    }
  }
  return keys
}
